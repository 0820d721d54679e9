//! A body in a few words. Reads any body: what it does not know, it leaves out.

use serde_json::Value;

/// What a person wants to know first: lines, money, reason, shortages.
pub fn phrase(data: &Value) -> String {
    let lines = items(data, "lines").map(|line| format!("{} x {}", number(line, "quantity"), text(line, "sku")));
    let amount = ["total", "amount"].iter().filter_map(|name| money(&data[*name]));
    let reason = data["reason"].as_str().map(str::to_owned);
    let shortages = items(data, "shortages").map(|shortage| {
        format!("{} of {} {}", number(shortage, "available"), number(shortage, "requested"), text(shortage, "sku"))
    });
    let parts: Vec<String> = lines.chain(amount).chain(reason).chain(shortages).collect();
    parts.join(", ")
}

/// `{"minor": 1999, "currency": "EUR", "scale": 2}` as `19.99 EUR`. Digits are moved, nothing is computed in floats.
pub fn money(value: &Value) -> Option<String> {
    let minor = value["minor"].as_i64()?;
    let currency = value["currency"].as_str()?;
    let scale = usize::try_from(value["scale"].as_u64()?).ok()?;
    let digits = format!("{:0>width$}", minor.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if minor < 0 { "-" } else { "" };
    let point = if scale == 0 { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction} {currency}"))
}

fn items<'a>(data: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    data[name].as_array().into_iter().flatten()
}

fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn money_moves_the_point_by_its_scale() {
        let of = |minor: i64, currency: &str, scale: u64| {
            money(&json!({ "minor": minor, "currency": currency, "scale": scale })).unwrap()
        };
        assert_eq!(of(1999, "EUR", 2), "19.99 EUR");
        assert_eq!(of(5, "EUR", 2), "0.05 EUR");
        assert_eq!(of(-1999, "EUR", 2), "-19.99 EUR");
        assert_eq!(of(1999, "JPY", 0), "1999 JPY");
        assert_eq!(of(1, "KWD", 3), "0.001 KWD");
        assert_eq!(money(&json!(1999)), None);
    }

    #[test]
    fn a_body_is_told_by_what_it_has() {
        let created = json!({
            "order_id": "x", "total": { "minor": 3998, "currency": "EUR", "scale": 2 },
            "lines": [{ "sku": "mug", "quantity": 2 }]
        });
        assert_eq!(phrase(&created), "2 x mug, 39.98 EUR");
        let failed = json!({
            "reason": "out_of_stock", "shortages": [{ "sku": "mug", "requested": 2, "available": 0 }]
        });
        assert_eq!(phrase(&failed), "out_of_stock, 0 of 2 mug");
        assert_eq!(phrase(&json!({ "order_id": "x" })), "");
        assert_eq!(phrase(&Value::Null), "");
    }
}
