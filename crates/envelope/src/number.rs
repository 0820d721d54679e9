//! Number literals that are integers though they are not written as such.
//!
//! JSON Schema counts `1.0` and `1e3` among the integers, `serde` does not. A body from another language may use either, so
//! they are rewritten before the typed parse. The arithmetic is on the digits: no detour through doubles, no rounding.

use crate::limits::INTEGER_MAX;

/// The integer that a JSON number literal denotes, if it is one in ±[`INTEGER_MAX`].
pub(crate) fn integral(literal: &str) -> Option<i64> {
    let (negative, unsigned) = literal.strip_prefix('-').map_or((false, literal), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let trailing_zeros = digits.len() - digits.trim_end_matches('0').len();
    // The value is `significant` times ten to the `scale`; an exponent that overflows is far outside the range.
    let written: i64 = exponent.parse().ok()?;
    let shift = i64::try_from(trailing_zeros).ok()? - i64::try_from(fraction.len()).ok()?;
    let scale = written.checked_add(shift)?;
    let factor = 10_i64.checked_pow(u32::try_from(scale).ok()?)?;
    let magnitude = significant.parse::<i64>().ok()?.checked_mul(factor).filter(|value| *value <= INTEGER_MAX)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// `json` with every integral number literal written as a plain integer. The text must be valid JSON.
pub(crate) fn plain_integers(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_string = rest.starts_with('"');
        let (token, behind) = rest.split_at(if is_string { string_len(rest) } else { number_len(rest) });
        match if is_string { None } else { integral(token) } {
            Some(integer) => plain.push_str(&integer.to_string()),
            None => plain.push_str(token),
        }
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

fn number_len(text: &str) -> usize {
    text.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(text.len())
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
mod tests;
