//! From an offset in a JSON text to the member that stands there.

/// An object or array around the position.
enum Around<'a> {
    /// The name read last, with its escapes.
    Object(&'a str),
    /// How many commas were passed.
    Array(usize),
}

/// The path of the value at `offset`, as `lines[3].quantity`; empty at the top. The text before the offset must be JSON.
pub(super) fn member_at(text: &str, offset: usize) -> String {
    let mut around: Vec<Around<'_>> = Vec::new();
    let mut at = 0;
    // The name of a member ends before its value starts; a string that holds the offset is the value or the name itself.
    while at < text.len() && at <= offset {
        let rest = &text[at..];
        match rest.as_bytes()[0] {
            b'{' => around.push(Around::Object("")),
            b'[' => around.push(Around::Array(0)),
            b'}' | b']' => drop(around.pop()),
            b',' => match around.last_mut() {
                Some(Around::Array(index)) => *index += 1,
                Some(Around::Object(name)) => *name = "",
                None => {}
            },
            b'"' => {
                let len = string_len(rest);
                if let Some(Around::Object(name @ "")) = around.last_mut() {
                    *name = rest.get(1..len - 1).unwrap_or_default();
                }
                at += len;
                continue;
            }
            _ => {}
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    path(&around)
}

fn path(around: &[Around<'_>]) -> String {
    let mut path = String::new();
    for step in around {
        match step {
            Around::Object("") => {}
            Around::Object(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Around::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Length of the string literal that `text` begins with, both quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::member_at;

    #[test]
    fn members_are_named_by_their_path() {
        let text = r#"{"a":1,"lines":[{"sku":"x,\"}","q":7},{"q":8}],"ä":{"b":[[9]]}}"#;
        let check = |literal: &str, path: &str| {
            let offset = text.find(literal).unwrap() + literal.len() - 1;
            assert_eq!(member_at(text, offset), path, "{literal}");
        };
        check("\"a\":1", "a");
        check("\"q\":7", "lines[0].q");
        check("x,", "lines[0].sku");
        check("\"q\":8", "lines[1].q");
        check("[[9", "ä.b[0][0]");
        assert_eq!(member_at(text, 0), "");
        assert_eq!(member_at("", 0), "");
    }

    #[test]
    fn an_offset_beyond_a_cut_off_text_is_harmless() {
        assert_eq!(member_at(r#"{"a":"unterminated"#, 500), "a");
        assert_eq!(member_at(r#"{""#, 500), "");
    }
}
