//! Which kinds of orders are sent, and in which order. Pure.

use std::str::FromStr;

use serde::Serialize;

/// The way of an order through the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Paid and reserved.
    Confirmed,
    /// The customer cannot pay.
    Declined,
    /// Paid, out of stock, refunded.
    OutOfStock,
    /// Cancelled by the customer right after it was placed.
    Cancelled,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Confirmed, Self::Declined, Self::OutOfStock, Self::Cancelled];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Declined => "declined",
            Self::OutOfStock => "out_of_stock",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How many parts of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mix {
    parts: Vec<(Kind, i64)>,
}

impl Mix {
    /// The kinds in their parts, spread evenly and the same in every run: the one that is behind most comes next.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> + use<> {
        let parts = self.parts.clone();
        let all: i64 = parts.iter().map(|(_, parts)| parts).sum();
        let mut behind = vec![0_i64; parts.len()];
        std::iter::from_fn(move || {
            for (behind, (_, parts)) in behind.iter_mut().zip(&parts) {
                *behind += parts;
            }
            let next = (0..parts.len()).rev().max_by_key(|at| behind[*at])?;
            behind[next] -= all;
            Some(parts[next].0)
        })
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts: Vec<(Kind, i64)> = Vec::new();
        for part in text.split(',') {
            let (word, number) = part.split_once('=').ok_or_else(|| format!("{part:?} is not like confirmed=7"))?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word.trim());
            let kind =
                kind.ok_or_else(|| format!("{word:?} is none of confirmed, declined, out_of_stock, cancelled"))?;
            let number: u16 = number.trim().parse().map_err(|_| format!("{number:?} is no number of parts"))?;
            if parts.iter().any(|(known, _)| *known == kind) {
                return Err(format!("{word} is there twice"));
            }
            if number > 0 {
                parts.push((kind, number.into()));
            }
        }
        if parts.is_empty() { Err("nothing is left to send".to_owned()) } else { Ok(Self { parts }) }
    }
}
