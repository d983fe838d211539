//! Tools with arguments and results of all types.

use std::collections::BTreeMap;

use cofferdam_sdk::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
pub struct Echoed {
    text: String,
    flag: bool,
    integer: i64,
    number: f64,
    list: Vec<String>,
    map: BTreeMap<String, i64>,
}

/// Returns its arguments.
#[tool]
pub fn echo(
    /// Any text.
    text: String,
    /// True or false.
    flag: bool,
    /// A whole number.
    integer: i64,
    /// Any number.
    number: f64,
    /// Some texts.
    list: Vec<String>,
    /// Numbers by name.
    map: BTreeMap<String, i64>,
) -> Echoed {
    Echoed { text, flag, integer, number, list, map }
}

#[derive(Serialize)]
pub struct Defaults {
    count: i64,
    word: String,
    tags: Vec<String>,
    ratio: f64,
    flag: bool,
}

/// Returns its arguments, all of which have defaults.
#[tool]
pub fn defaults(
    /// How many.
    #[tool(default = 3)]
    count: i64,
    /// A word.
    #[tool(default = "abc".to_owned())]
    word: String,
    /// Some tags.
    #[tool(default = vec!["x".to_owned(), "y".to_owned()])]
    tags: Vec<String>,
    /// A part of the whole.
    #[tool(default = 0.5)]
    ratio: f64,
    /// True or false.
    #[tool(default = true)]
    flag: bool,
) -> Defaults {
    Defaults { count, word, tags, ratio, flag }
}

#[derive(Serialize)]
pub struct Nullables {
    name: Option<String>,
    count: Option<i64>,
}

/// Returns its arguments, which may be missing.
#[tool]
pub fn nullables(
    /// A name, if there is one.
    name: Option<String>,
    /// How many, if that is known.
    count: Option<i64>,
) -> Nullables {
    Nullables { name, count }
}

/// Who has ordered.
#[derive(Deserialize, JsonSchema)]
pub struct Customer {
    name: String,
    email: Option<String>,
}

/// A line of an order.
#[derive(Deserialize, JsonSchema)]
pub struct Item {
    sku: String,
    #[serde(default = "one")]
    quantity: i64,
}

fn one() -> i64 {
    1
}

/// How far an order is.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Open,
    Paid,
}

/// An order.
#[derive(Deserialize, JsonSchema)]
pub struct Order {
    id: i64,
    customer: Customer,
    items: Vec<Item>,
    status: Status,
}

#[derive(Serialize)]
pub struct Summary {
    id: i64,
    quantity: i64,
    first: Option<String>,
    customer: String,
    email: Option<String>,
    status: Status,
}

/// Sums up an order.
#[tool]
pub fn nested(
    /// The order.
    order: Order,
) -> Summary {
    Summary {
        id: order.id,
        quantity: order.items.iter().map(|item| item.quantity).sum(),
        first: order.items.into_iter().next().map(|item| item.sku),
        customer: order.customer.name,
        email: order.customer.email,
        status: order.status,
    }
}

#[derive(Serialize)]
pub struct Unicode {
    characters: usize,
    bytes: usize,
    reversed: String,
    text: String,
}

/// Takes a text apart.
#[tool]
pub fn unicode(
    /// Any text.
    text: String,
) -> Unicode {
    let reversed = text.chars().rev().collect();
    Unicode { characters: text.chars().count(), bytes: text.len(), reversed, text }
}

#[derive(Serialize)]
pub struct BigNumbers {
    integer: i64,
    number: f64,
}

/// Returns numbers with all their digits.
#[tool]
pub fn big_numbers(
    /// A whole number of 64 bits.
    integer: i64,
    /// Any number.
    number: f64,
) -> BigNumbers {
    BigNumbers { integer, number }
}
