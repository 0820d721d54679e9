//! As much of Markdown as the checks need.

/// A line of a document that is neither code nor drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// The lines outside fences.
pub(super) fn prose(document: &str) -> Vec<Line<'_>> {
    let mut in_fence = false;
    let mut lines = Vec::new();
    for (index, text) in document.lines().enumerate() {
        let is_fence = text.trim_start().starts_with("```");
        if !in_fence && !is_fence {
            lines.push(Line { number: index + 1, text });
        }
        in_fence ^= is_fence;
    }
    lines
}

/// The targets of the links in a line; code spans hold none.
pub(super) fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        // The label of a link may be code, so the target may begin the part behind it.
        if index % 2 == 0 {
            let targets = part.match_indices("](").filter_map(|(start, _)| part[start + 2..].split(')').next());
            found.extend(targets.map(|target| target.split_whitespace().next().unwrap_or_default()));
        }
    }
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
    found.extend(definition);
    found.retain(|target| !target.is_empty());
    found
}

/// The code spans of the form `path/file.rs::name`, as file and name.
pub(super) fn test_references(line: &str) -> Vec<(&str, &str)> {
    let spans = line.split('`').skip(1).step_by(2);
    let reference = |span| {
        let (file, name): (&str, &str) = str::split_once(span, ".rs::")?;
        Some((&span[..file.len() + ".rs".len()], name.rsplit("::").next()?))
    };
    spans.filter_map(reference).collect()
}

/// The fenced blocks below a comment `<!-- from: path -->`, as line, path and code.
pub(super) fn quotes(document: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (start, mark) in document.match_indices("<!-- from: ") {
        let rest = &document[start + mark.len()..];
        let quote = rest.split_once(" -->\n```").and_then(|(source, fence)| {
            let (_language, block) = fence.split_once('\n')?;
            Some((source, block.split_once("```")?.0))
        });
        // A comment without a block quotes a file that does not exist.
        let (source, code) = quote.unwrap_or((rest.lines().next().unwrap_or_default(), rest));
        found.push((document[..start].lines().count() + 1, source, code));
    }
    found
}

/// The names that links can point at within a document: its headings, as the forges make them.
pub(super) fn anchors(document: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in prose(document) {
        let heading = line.text.trim_start_matches('#');
        if heading.len() == line.text.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = found.iter().filter(|known| **known == anchor).count();
        found.push(if again == 0 { anchor } else { format!("{anchor}-{again}") });
    }
    found
}
