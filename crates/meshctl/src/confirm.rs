//! Asking before something is done to many things at once.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::outcome::Failure;

/// More than so many are confirmed by typing their number.
const TYPED_ABOVE: u64 = 20;

/// Asks whether `what` (`redrive 7 letters`) is to be done to `count` things; `yes` has answered already.
///
/// # Errors
/// A usage error when nobody can be asked; an error when the terminal cannot be read.
pub fn confirm(what: &str, count: u64, yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(format!("nobody can be asked here whether to {what}: say --yes")));
    }
    let hint = if count > TYPED_ABOVE { format!("type {count} to {what}") } else { format!("{what}? [y/N]") };
    write!(io::stderr().lock(), "{hint} ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer, count))
}

/// Whether the answer agrees: to many things by their number only.
fn is_yes(answer: &str, count: u64) -> bool {
    let answer = answer.trim();
    if count > TYPED_ABOVE {
        return answer == count.to_string();
    }
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn many_things_are_confirmed_by_their_number() {
        assert!(is_yes("y\n", 20) && is_yes(" Yes ", 1));
        assert!(!is_yes("\n", 1) && !is_yes("no", 20) && !is_yes("20", 20));
        assert!(is_yes("21\n", 21));
        assert!(!is_yes("y", 21) && !is_yes("210", 21));
    }
}
