//! What is generated from the contracts and from the runtime's definitions, and committed.

use crate::tree;

/// The tests that compare the committed files with what generates them, and write them when `BLESS` is set.
const WRITERS: [&str; 2] = ["contracts", "documents"];

/// Whether to write.
#[derive(Debug, clap::Args)]
pub(crate) struct Schemas {
    /// Only compare; end with 1 when something is not as generated
    #[arg(long)]
    check: bool,
}

impl Schemas {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        // Of the whole workspace, so that it is the build that `cargo test --workspace` makes.
        let mut cargo = tree::cargo(&["test", "--workspace", "--quiet"]);
        cargo.args(WRITERS.iter().flat_map(|writer| ["--test", writer]));
        if self.check {
            return tree::run(cargo.env_remove("BLESS"));
        }
        tree::run(cargo.env("BLESS", "1"))
    }
}
