//! Header values: the percent-encoding of the CloudEvents protocol bindings.
//!
//! Everything that the mesh mints is its own encoding ([`is_identity`]), because some CloudEvents libraries encode and
//! some do not, and only values that need no encoding read the same in both.

/// Why a header value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeValueError {
    /// A `%` without two hexadecimal digits behind it.
    #[error("a % that no two hexadecimal digits follow")]
    Escape,
    /// The decoded bytes are not UTF-8.
    #[error("percent-encoded bytes that are not UTF-8")]
    Utf8,
    /// A control character, raw or encoded.
    #[error("a control character")]
    Control,
}

/// Whether a byte stands for itself: U+0021 to U+007E without `%` and `"`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'%' && byte != b'"'
}

/// Whether encoding and decoding leave `value` as it is.
pub(crate) fn is_identity(value: &str) -> bool {
    value.bytes().all(is_plain)
}

/// Encodes what is not plain, as UTF-8 bytes with upper-case digits.
pub(crate) fn encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for nibble in [byte >> 4, byte & 0x0f] {
                encoded.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
            }
        }
    }
    encoded
}

/// Undoes double-quoting, then percent-encoding, exactly once each.
pub(crate) fn decode(raw: &str) -> Result<String, DecodeValueError> {
    let text = unquote(raw.trim_matches([' ', '\t']));
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            decoded.push(escape(bytes.get(at + 1..at + 3)).ok_or(DecodeValueError::Escape)?);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    let value = String::from_utf8(decoded).map_err(|_| DecodeValueError::Utf8)?;
    if value.chars().any(char::is_control) { Err(DecodeValueError::Control) } else { Ok(value) }
}

fn escape(digits: Option<&[u8]>) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    match digits {
        Some([high, low]) => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

/// The content of an RFC 7230 quoted string, or the text itself when it is none.
fn unquote(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut content = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        content.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    content
}

#[cfg(test)]
mod tests;
