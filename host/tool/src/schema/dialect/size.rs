//! How large a schema may be in the strict mode of OpenAI.
//!
//! <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>

use serde_json::Value;

use super::writer::{Stop, cannot_say};

const PROPERTIES_MAX: usize = 5_000;
/// Levels of `properties`, `items` and alternatives, references not followed.
const LEVELS_MAX: usize = 10;
/// Characters in the names of properties and definitions and in allowed values.
const CHARACTERS_MAX: usize = 120_000;
const MEMBERS_MAX: usize = 1_000;
/// A list of more members than this has a limit on their characters.
const LONG_LIST: usize = 250;
const LONG_LIST_CHARACTERS_MAX: usize = 15_000;

#[derive(Default)]
struct Tally {
    properties: usize,
    characters: usize,
    members: usize,
}

pub(super) fn check_openai(schema: &Value) -> Result<(), Stop> {
    let mut tally = Tally::default();
    let mut pending = vec![(schema, 0)];
    while let Some((schema, level)) = pending.pop() {
        if level > LEVELS_MAX {
            return Err(cannot_say("", "the schema has more than 10 levels"));
        }
        let maps = [schema.get("properties"), schema.get("$defs")];
        for (index, map) in maps.into_iter().enumerate() {
            for (name, child) in map.and_then(Value::as_object).into_iter().flatten() {
                tally.properties += usize::from(index == 0);
                tally.characters += name.chars().count();
                // A definition is looked at from its own top.
                pending.push((child, if index == 0 { level + 1 } else { 0 }));
            }
        }
        pending.extend(schema.get("items").map(|items| (items, level + 1)));
        let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        pending.extend(branches.map(|branch| (branch, level)));
        tally.members(schema)?;
    }
    match tally {
        Tally { properties, .. } if properties > PROPERTIES_MAX => {
            Err(cannot_say("", "more than 5000 properties"))
        }
        Tally { characters, .. } if characters > CHARACTERS_MAX => {
            Err(cannot_say("", "more than 120000 characters in names and allowed values"))
        }
        Tally { members, .. } if members > MEMBERS_MAX => {
            Err(cannot_say("", "more than 1000 allowed values"))
        }
        _ => Ok(()),
    }
}

impl Tally {
    fn members(&mut self, schema: &Value) -> Result<(), Stop> {
        let members =
            schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        let characters = members.iter().chain(schema.get("const")).map(length).sum::<usize>();
        if members.len() > LONG_LIST && characters > LONG_LIST_CHARACTERS_MAX {
            return Err(cannot_say("", "a list of allowed values with more than 15000 characters"));
        }
        self.members += members.len();
        self.characters += characters;
        Ok(())
    }
}
