use super::*;

fn metadata(entries: &[(&str, &str)]) -> Metadata {
    let text = |query: &str| format!("{{\"query\": \"{query}\"}}");
    entries.iter().map(|(name, query)| ((*name).to_owned(), text(query))).collect()
}

#[test]
fn missing_different_and_left_over_are_each_said() {
    let committed =
        metadata(&[("query-1.json", "select 1"), ("query-2.json", "select 2"), ("query-3.json", "select 3")]);
    let fresh = metadata(&[("query-1.json", "select 1"), ("query-2.json", "select  22"), ("query-4.json", "select 4")]);
    assert_eq!(
        differences("orders", &committed, &fresh),
        [
            "orders: different query-2.json: select 22",
            "orders: missing query-4.json: select 4",
            "orders: left over query-3.json: select 3",
        ]
    );
    assert!(differences("orders", &fresh, &fresh).is_empty());
}

#[test]
fn writing_leaves_what_is_fresh_and_nothing_else() {
    let folder = testkit::scratch::dir("metadata").unwrap();
    let place = folder.path().join(".sqlx");
    let fresh = metadata(&[("query-2.json", "select 2"), ("query-3.json", "select 3")]);
    write(&place, &Metadata::new(), &metadata(&[("query-1.json", "select 1"), ("query-2.json", "old")])).unwrap();
    write(&place, &read(&place).unwrap(), &fresh).unwrap();
    assert_eq!(read(&place).unwrap(), fresh);
}

#[test]
fn a_touched_source_gets_its_time_back_unless_it_was_edited() {
    let folder = testkit::scratch::dir("touched").unwrap();
    let source = folder.path().join("lib.rs");
    std::fs::write(&source, "one").unwrap();
    let modified = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    let long_ago = modified(&source) - std::time::Duration::from_secs(1_000);
    std::fs::File::options().append(true).open(&source).unwrap().set_modified(long_ago).unwrap();

    let touched = Touched::new(&source).unwrap();
    assert!(modified(&source) > long_ago);
    touched.restore().unwrap();
    assert_eq!(modified(&source), long_ago);

    let touched = Touched::new(&source).unwrap();
    let edited = modified(&source) + std::time::Duration::from_secs(1);
    std::fs::File::options().append(true).open(&source).unwrap().set_modified(edited).unwrap();
    touched.restore().unwrap();
    assert_eq!(modified(&source), edited);
}
