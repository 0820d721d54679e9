//! A JSON scanner with its own stack: as deep as the profile allows, never as deep as the input likes.

use std::collections::HashSet;

use super::{ProfileError, Scanned, Violation};
use crate::limits::{DEPTH_MAX, INTEGER_MAX};

/// An object or array whose end is still to come.
enum Open {
    /// The member names so far, unescaped.
    Object(HashSet<String>),
    Array,
}

/// What may stand at the current position.
enum Expect {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open>,
    first_null: Option<usize>,
    /// The last string read, unescaped; kept to reuse its memory.
    string: String,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, open: Vec::new(), first_null: None, string: String::new() }
    }

    pub(super) fn run(mut self) -> Result<Scanned, ProfileError> {
        self.skip_space();
        if self.peek() != Some(b'{') {
            return Err(self.error(Violation::NotAnObject));
        }
        let mut expect = Expect::Value;
        loop {
            self.skip_space();
            expect = match expect {
                Expect::ValueOrEnd if self.peek() == Some(b']') => self.close(),
                Expect::NameOrEnd if self.peek() == Some(b'}') => self.close(),
                Expect::Value | Expect::ValueOrEnd => self.value()?,
                Expect::Name | Expect::NameOrEnd => self.name()?,
                Expect::CommaOrEnd if self.open.is_empty() => break,
                Expect::CommaOrEnd => self.comma_or_end()?,
            };
        }
        match self.peek() {
            None => Ok(Scanned { first_null: self.first_null }),
            Some(_) => Err(self.error(Violation::NotAnObject)),
        }
    }

    fn value(&mut self) -> Result<Expect, ProfileError> {
        match self.peek() {
            Some(b'{') => return self.enter(Open::Object(HashSet::new()), Expect::NameOrEnd),
            Some(b'[') => return self.enter(Open::Array, Expect::ValueOrEnd),
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        }
        Ok(Expect::CommaOrEnd)
    }

    fn enter(&mut self, open: Open, inside: Expect) -> Result<Expect, ProfileError> {
        if self.open.len() == DEPTH_MAX {
            return Err(self.error(Violation::TooDeep));
        }
        self.open.push(open);
        self.at += 1;
        Ok(inside)
    }

    fn close(&mut self) -> Expect {
        self.open.pop();
        self.at += 1;
        Expect::CommaOrEnd
    }

    fn comma_or_end(&mut self) -> Result<Expect, ProfileError> {
        let in_object = matches!(self.open.last(), Some(Open::Object(_)));
        match (self.peek(), in_object) {
            (Some(b'}'), true) | (Some(b']'), false) => return Ok(self.close()),
            (Some(b','), _) => self.at += 1,
            (_, true) => return Err(self.malformed("',' or '}'")),
            (_, false) => return Err(self.malformed("',' or ']'")),
        }
        Ok(if in_object { Expect::Name } else { Expect::Value })
    }

    fn name(&mut self) -> Result<Expect, ProfileError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.malformed("a member name"));
        }
        self.string()?;
        if let Some(Open::Object(names)) = self.open.last_mut()
            && !names.insert(self.string.clone())
        {
            let violation = Violation::DuplicateKey(self.string.clone());
            return Err(ProfileError { violation, offset: start });
        }
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.malformed("':'"));
        }
        self.at += 1;
        Ok(Expect::Value)
    }

    fn word(&mut self) -> Result<(), ProfileError> {
        let rest = &self.text[self.at..];
        let Some(word) = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word)) else {
            return Err(self.malformed("a value"));
        };
        if word == "null" {
            self.first_null.get_or_insert(self.at);
        }
        self.at += word.len();
        Ok(())
    }

    /// Reads a string literal into `self.string`.
    fn string(&mut self) -> Result<(), ProfileError> {
        self.string.clear();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            self.string.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0) => return Err(self.error(Violation::Nul)),
                _ => return Err(self.malformed("the rest of a string")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), ProfileError> {
        let c = match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => return self.unicode_escape(),
            Some(escaped @ (b'"' | b'\\' | b'/')) => char::from(*escaped),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.malformed("an escape sequence")),
        };
        self.string.push(c);
        self.at += 2;
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<(), ProfileError> {
        let first = self.code_unit(self.at).ok_or_else(|| self.malformed("four hexadecimal digits"))?;
        let second = self.code_unit(self.at + 6);
        let units = [first, second.unwrap_or_default()];
        // One unit, or two when the first is the leading half of a pair.
        let taken = if (0xd800..0xdc00).contains(&first) && second.is_some() { 2 } else { 1 };
        match char::decode_utf16(units[..taken].iter().copied()).next() {
            Some(Ok('\0')) => return Err(self.error(Violation::Nul)),
            Some(Ok(c)) => self.string.push(c),
            _ => return Err(self.error(Violation::LoneSurrogate)),
        }
        self.at += 6 * taken;
        Ok(())
    }

    /// The UTF-16 unit of the `\uXXXX` at this offset.
    fn code_unit(&self, at: usize) -> Option<u16> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        let hexadecimal = digits.bytes().all(|b| b.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)
    }

    fn number(&mut self) -> Result<(), ProfileError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let literal = &self.text[start..self.at];
        let in_range = if integer {
            literal.parse::<i64>().is_ok_and(|value| (-INTEGER_MAX..=INTEGER_MAX).contains(&value))
        } else {
            literal.parse::<f64>().is_ok_and(f64::is_finite)
        };
        if in_range { Ok(()) } else { Err(ProfileError { violation: Violation::NumberRange, offset: start }) }
    }

    fn digits(&mut self) -> Result<(), ProfileError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.malformed("a digit")) } else { Ok(()) }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, violation: Violation) -> ProfileError {
        ProfileError { violation, offset: self.at }
    }

    fn malformed(&self, expected: &'static str) -> ProfileError {
        self.error(Violation::MalformedJson(expected))
    }
}
