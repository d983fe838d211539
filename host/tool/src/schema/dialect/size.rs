//! Size limits of schemas in OpenAI's strict mode.
//!
//! <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>

use serde_json::Value;

use super::writer::{Stop, inexpressible};

const PROPERTIES_MAX: usize = 5_000;
/// Maximum nesting of `properties`, `items` and alternatives, without following references.
const LEVELS_MAX: usize = 10;
/// Maximum number of characters in allowed values and in the names of properties and definitions.
const CHARACTERS_MAX: usize = 120_000;
const MEMBERS_MAX: usize = 1_000;
/// Number of members above which the characters of a list are limited.
const LONG_LIST: usize = 250;
const LONG_LIST_CHARACTERS_MAX: usize = 15_000;

#[derive(Default)]
struct SizeTally {
    properties: usize,
    characters: usize,
    members: usize,
}

pub(super) fn check_openai(schema: &Value) -> Result<(), Stop> {
    let mut tally = SizeTally::default();
    let mut pending = vec![(schema, 0)];
    while let Some((schema, level)) = pending.pop() {
        if level > LEVELS_MAX {
            return Err(inexpressible("", "the schema has more than 10 levels"));
        }
        let maps = [schema.get("properties"), schema.get("$defs")];
        for (index, map) in maps.into_iter().enumerate() {
            for (name, child) in map.and_then(Value::as_object).into_iter().flatten() {
                tally.properties += usize::from(index == 0);
                tally.characters += name.chars().count();
                // The levels of a definition start at its own top.
                pending.push((child, if index == 0 { level + 1 } else { 0 }));
            }
        }
        pending.extend(schema.get("items").map(|items| (items, level + 1)));
        let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        pending.extend(branches.map(|branch| (branch, level)));
        tally.members(schema)?;
    }
    match tally {
        SizeTally { properties, .. } if properties > PROPERTIES_MAX => {
            Err(inexpressible("", "more than 5000 properties"))
        }
        SizeTally { characters, .. } if characters > CHARACTERS_MAX => {
            Err(inexpressible("", "more than 120000 characters in names and allowed values"))
        }
        SizeTally { members, .. } if members > MEMBERS_MAX => {
            Err(inexpressible("", "more than 1000 allowed values"))
        }
        _ => Ok(()),
    }
}

impl SizeTally {
    fn members(&mut self, schema: &Value) -> Result<(), Stop> {
        let members =
            schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        let characters = members.iter().chain(schema.get("const")).map(length).sum::<usize>();
        if members.len() > LONG_LIST && characters > LONG_LIST_CHARACTERS_MAX {
            return Err(inexpressible(
                "",
                "a list of allowed values with more than 15000 characters",
            ));
        }
        self.members += members.len();
        self.characters += characters;
        Ok(())
    }
}
