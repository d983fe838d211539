//! Equality of JSON values: numbers by value, objects in any order, and `true` is not `1`
//! (`ARG-18`).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Number, Value};

use super::number::compare;

/// Longest array whose duplicates are searched for pair by pair.
const ITEMS_COMPARED_MAX: usize = 16;

/// Returns whether two values are equal by the rules of JSON Schema: numbers by value (`2` equals
/// `2.0`), objects in any order of their members. Recurses once per level of the values.
#[must_use]
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| equal(left, right)))
        }
        _ => left == right,
    }
}

/// Returns whether two of the values are equal. Long lists are grouped by a keyed hash, so that
/// crafted values cannot make this quadratic.
pub(crate) fn has_duplicates(values: &[Value]) -> bool {
    if values.len() <= ITEMS_COMPARED_MAX {
        return values
            .iter()
            .enumerate()
            .any(|(i, left)| values.iter().skip(i + 1).any(|right| equal(left, right)));
    }
    let keys = RandomState::new();
    let mut groups: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(values.len());
    values.iter().any(|value| {
        let group = groups.entry(fingerprint(value, &keys)).or_default();
        let found = group.iter().any(|other| equal(other, value));
        group.push(value);
        found
    })
}

/// Returns a hash that is the same for equal values.
fn fingerprint(value: &Value, keys: &RandomState) -> u64 {
    match value {
        Value::Null => keys.hash_one(0_u8),
        Value::Bool(value) => keys.hash_one((1_u8, value)),
        Value::Number(number) => number_fingerprint(number, keys),
        Value::String(text) => keys.hash_one((3_u8, text)),
        Value::Array(items) => {
            let items: Vec<u64> = items.iter().map(|item| fingerprint(item, keys)).collect();
            keys.hash_one((4_u8, items))
        }
        // A sum does not depend on the order of the members.
        Value::Object(members) => {
            members.iter().fold(keys.hash_one(5_u8), |sum, (name, member)| {
                sum.wrapping_add(keys.hash_one((name, fingerprint(member, keys))))
            })
        }
    }
}

/// Hashes a number by its float. A number that equals a 64-bit integer has the same float as that
/// integer, so equal numbers share a hash.
fn number_fingerprint(number: &Number, keys: &RandomState) -> u64 {
    let float = number.as_f64().unwrap_or_default();
    // `-0` equals `0`.
    let float = if float == 0.0 { 0.0 } else { float };
    keys.hash_one((2_u8, float.to_bits()))
}
