//! New migration files are invisible to cargo unless their folder is named here.
fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
