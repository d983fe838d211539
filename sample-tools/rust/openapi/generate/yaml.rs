//! Documents in YAML.

use serde_json::{Map, Number, Value as Json};
use yaml_rust2::{Yaml, YamlLoader};

/// Maximum depth of a document.
const DEPTH_MAX: usize = 100;

pub(super) fn parse(text: &str) -> Result<Json, String> {
    let documents = YamlLoader::load_from_str(text).map_err(|error| error.to_string())?;
    match documents.as_slice() {
        [document] => json(document, 0),
        documents => Err(format!("expected one YAML document, found {}", documents.len())),
    }
}

fn json(yaml: &Yaml, depth: usize) -> Result<Json, String> {
    if depth > DEPTH_MAX {
        return Err(format!("it is nested more than {DEPTH_MAX} levels deep"));
    }
    Ok(match yaml {
        Yaml::Null => Json::Null,
        Yaml::Boolean(boolean) => Json::from(*boolean),
        Yaml::Integer(integer) => Json::from(*integer),
        Yaml::Real(digits) => {
            let number = digits.parse().ok().and_then(Number::from_f64);
            number.map_or_else(|| Json::from(digits.as_str()), Json::from)
        }
        Yaml::String(text) => Json::from(text.as_str()),
        Yaml::Array(items) => {
            Json::Array(items.iter().map(|item| json(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Yaml::Hash(members) => {
            let members = members.iter().map(|(key, member)| {
                let key = match key {
                    Yaml::String(text) => text.clone(),
                    // Statuses such as `200` are keys of responses.
                    Yaml::Integer(integer) => integer.to_string(),
                    Yaml::Boolean(boolean) => boolean.to_string(),
                    _ => return Err("a key is not a string".to_owned()),
                };
                Ok((key, json(member, depth + 1)?))
            });
            Json::Object(members.collect::<Result<Map<_, _>, _>>()?)
        }
        Yaml::Alias(_) | Yaml::BadValue => return Err("an alias has no anchor".to_owned()),
    })
}
