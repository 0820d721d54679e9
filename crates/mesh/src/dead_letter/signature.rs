//! What two errors have in common when the same thing is wrong.

/// Longest signature: what comes after says what happened, not what kind of thing.
const CHARS_MAX: usize = 200;

/// The subscriber and its error without what differs from fact to fact: numbers, ids and what is quoted become `#`.
pub(super) fn signature(subscriber: &str, error: &str) -> String {
    let mut plain = String::with_capacity(error.len());
    let mut quote = None;
    for word in error.split_inclusive(|character: char| !character.is_alphanumeric() && character != '-') {
        let end = word.chars().next_back().filter(|end| !end.is_alphanumeric() && *end != '-');
        if quote.is_none() {
            let name = word.strip_suffix(|character| Some(character) == end).unwrap_or(word);
            plain.push_str(if name.contains(|character: char| character.is_ascii_digit()) { "#" } else { name });
            plain.extend(end);
        }
        quote = match (quote, end) {
            (None, Some(mark @ ('`' | '"'))) => Some(mark),
            (Some(open), Some(mark)) if mark == open => {
                plain.push('#');
                plain.push(mark);
                None
            }
            (open, _) => open,
        };
    }
    format!("{subscriber}: {}", plain.chars().take(CHARS_MAX).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::signature;

    #[test]
    fn what_differs_from_fact_to_fact_does_not_count() {
        let same = [
            "account 0198c2f0-0000-7000-8000-000000000001 has 17 of 20 EUR",
            "account 0198c2f0-0000-7000-8000-00000000000f has 3 of 4000 EUR",
        ];
        assert_eq!(signature("s", same[0]), signature("s", same[1]));
        assert_eq!(signature("s", same[0]), "s: account # has # of # EUR");
        assert_eq!(
            signature("s", "unknown sku `mug` in line 7"),
            signature("s", "unknown sku `red poster` in line 12")
        );
        assert_eq!(signature("s", "no \"a\" and no \"b\""), "s: no \"#\" and no \"#\"");
    }

    #[test]
    fn different_errors_and_different_subscribers_stay_apart() {
        assert_ne!(signature("s", "no such account"), signature("s", "no such currency"));
        assert_ne!(signature("s", "no such account"), signature("t", "no such account"));
        assert_eq!(signature("s", "a quote that `never ends"), "s: a quote that `");
        assert_eq!(signature("s", ""), "s: ");
    }
}
