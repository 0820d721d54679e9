//! What a mail says, in plain words.

use events::{CancelReason, Money};

use super::{News, Notice};

/// The longest line, as mails are written since there are mails.
const LINE_CHARS_MAX: usize = 72;

/// The subject line.
#[must_use]
pub fn subject(notice: &Notice) -> String {
    let order = notice.order_id;
    match &notice.news {
        News::Confirmed => format!("Your order {order} is confirmed"),
        News::Cancelled { .. } => format!("Your order {order} is cancelled"),
        News::Refunded { .. } => format!("Your money for order {order} is on its way back"),
    }
}

/// The text.
#[must_use]
pub fn body(notice: &Notice) -> String {
    let order = notice.order_id;
    let news = match &notice.news {
        News::Confirmed => format!(
            "your order {order} is confirmed: it is paid, and everything in it is set aside for you. We will send it \
             soon."
        ),
        News::Cancelled { reason } => format!("your order {order} is cancelled{}", because(reason)),
        News::Refunded { amount } => {
            format!("we gave you back {} for your order {order}. It is in your account with us.", amount_text(*amount))
        }
    };
    format!("Hello,\n\n{}\n\nThe shop\n", wrapped(&news))
}

/// The text in lines that every mail program shows as they are.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let glue = match width {
            0 => "",
            width if width + 1 + word.chars().count() > LINE_CHARS_MAX => "\n",
            _ => " ",
        };
        width = word.chars().count() + if glue == " " { width + 1 } else { 0 };
        lines.push_str(glue);
        lines.push_str(word);
    }
    lines
}

fn because(reason: &CancelReason) -> &'static str {
    match reason {
        CancelReason::PaymentDeclined => ": your payment could not be made. Nothing was charged.",
        CancelReason::OutOfStock => ": we do not have everything that you ordered. Whatever you paid, you get back.",
        CancelReason::Customer => ", as you asked. Whatever you paid, you get back.",
        CancelReason::Deadline => ": it could not be completed in time. Whatever you paid, you get back.",
        // The set is open: a reason that is added later is not ours to explain.
        _ => ". Whatever you paid, you get back.",
    }
}

/// `19.99 EUR`, `500 JPY`: as many digits after the point as the amount says.
fn amount_text(amount: Money) -> String {
    let (sign, scale) = (if amount.minor < 0 { "-" } else { "" }, usize::from(amount.scale));
    let digits = format!("{:0>width$}", amount.minor.unsigned_abs(), width = scale + 1);
    let (major, minor) = digits.split_at(digits.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{major}{point}{minor} {}", amount.currency)
}

#[cfg(test)]
mod tests {
    use events::Currency;

    use super::*;

    #[test]
    fn no_line_is_longer_than_it_should_be_and_no_word_is_lost() {
        let text = "we do not have everything that you ordered. ".repeat(10);
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.len() <= LINE_CHARS_MAX), "{lines}");
        assert!(lines.lines().count() <= text.len() / 60, "{lines}");
        assert_eq!(lines.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn amounts_have_the_digits_of_their_currency() {
        let money = |minor, currency| Money::new(minor, Currency::parse(currency).unwrap()).unwrap();
        for (minor, currency, text) in [
            (1999, "EUR", "19.99 EUR"),
            (5, "EUR", "0.05 EUR"),
            (0, "EUR", "0.00 EUR"),
            (-150, "EUR", "-1.50 EUR"),
            (500, "JPY", "500 JPY"),
            (1_234, "BHD", "1.234 BHD"),
        ] {
            assert_eq!(amount_text(money(minor, currency)), text);
        }
    }
}
