//! Fields of a JSON object, with errors that name their path.

use serde_json::{Map, Value};

use super::InvalidCase;
use crate::text::shortened;

/// A JSON object of a case, and its path.
pub(super) struct Fields<'v> {
    path: String,
    object: &'v Map<String, Value>,
}

/// A value of a case, and its path.
pub(super) struct Field<'v> {
    pub(super) path: String,
    pub(super) value: &'v Value,
}

impl<'v> Fields<'v> {
    /// Returns the field of this name, if the object has it.
    pub(super) fn get(&self, name: &str) -> Option<Field<'v>> {
        let path = self.path_of(name);
        self.object.get(name).map(|value| Field { path, value })
    }

    /// Returns the field of this name.
    pub(super) fn required(&self, name: &str) -> Result<Field<'v>, InvalidCase> {
        self.get(name).ok_or_else(|| InvalidCase {
            field: self.path_of(name),
            expected: "a value".to_owned(),
            found: "no such field".to_owned(),
        })
    }

    /// Returns the value that `read` makes of a field, if the object has it.
    pub(super) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(Field<'v>) -> Result<T, InvalidCase>,
    ) -> Result<Option<T>, InvalidCase> {
        self.get(name).map(read).transpose()
    }

    fn path_of(&self, name: &str) -> String {
        match self.path.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.path),
        }
    }
}

impl<'v> Field<'v> {
    /// Returns the error of a value that is not the expected one.
    pub(super) fn invalid(&self, expected: impl Into<String>) -> InvalidCase {
        let found = shortened(&self.value.to_string());
        InvalidCase { field: self.path.clone(), expected: expected.into(), found }
    }

    /// Returns the fields of an object that has no others than the known ones.
    pub(super) fn object(self, known: &[&str]) -> Result<Fields<'v>, InvalidCase> {
        let fields = self.any_object()?;
        match fields.object.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(fields),
            Some(unknown) => Err(InvalidCase {
                field: fields.path_of(&shortened(unknown)),
                expected: format!("one of the fields {}", known.join(", ")),
                found: "an unknown field".to_owned(),
            }),
        }
    }

    fn any_object(self) -> Result<Fields<'v>, InvalidCase> {
        match self.value.as_object() {
            Some(object) => Ok(Fields { path: self.path, object }),
            None => Err(self.invalid("a JSON object")),
        }
    }

    pub(super) fn map(self) -> Result<Map<String, Value>, InvalidCase> {
        Ok(self.any_object()?.object.clone())
    }

    pub(super) fn bool(self) -> Result<bool, InvalidCase> {
        self.value.as_bool().ok_or_else(|| self.invalid("true or false"))
    }

    /// Returns a string that is not empty.
    pub(super) fn string(self) -> Result<String, InvalidCase> {
        match self.value.as_str() {
            Some(string) if !string.trim().is_empty() => Ok(string.to_owned()),
            _ => Err(self.invalid("a string that is not empty")),
        }
    }

    /// Returns a whole number in a range.
    pub(super) fn number(self, min: u64, max: u64) -> Result<u64, InvalidCase> {
        let number = self.value.as_u64().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.invalid(format!("a whole number from {min} to {max}")))
    }

    /// Returns a whole number in a range of 32-bit numbers.
    pub(super) fn small_number(self, min: u32, max: u32) -> Result<u32, InvalidCase> {
        // The range makes the conversion lossless.
        self.number(min.into(), max.into()).map(|number| u32::try_from(number).unwrap_or(max))
    }

    /// Returns a number that is more than 0 and at most `max`.
    pub(super) fn fraction(self, max: f64) -> Result<f64, InvalidCase> {
        let number = self.value.as_f64().filter(|number| *number > 0.0 && *number <= max);
        number.ok_or_else(|| self.invalid(format!("a number above 0, at most {max}")))
    }

    /// Returns the value that a name stands for.
    pub(super) fn one_of<T: Copy>(self, names: &[(&str, T)]) -> Result<T, InvalidCase> {
        let named = names.iter().find(|(name, _)| self.value.as_str() == Some(name));
        let list = || names.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>();
        named.map(|(_, value)| *value).ok_or_else(|| self.invalid(list().join(" or ")))
    }

    /// Returns the items of a list.
    pub(super) fn items(self) -> Result<Vec<Field<'v>>, InvalidCase> {
        let list = self.value.as_array().ok_or_else(|| self.invalid("a list"))?.iter();
        let path = |index| format!("{}[{index}]", self.path);
        Ok(list.enumerate().map(|(index, value)| Field { path: path(index), value }).collect())
    }

    /// Returns the strings of a list, none of them empty.
    pub(super) fn strings(self) -> Result<Vec<String>, InvalidCase> {
        self.items()?.into_iter().map(Field::string).collect()
    }

    /// Returns the strings of a list, or the one string that the field is.
    pub(super) fn string_or_strings(self) -> Result<Vec<String>, InvalidCase> {
        if self.value.is_string() {
            return Ok(vec![self.string()?]);
        }
        match self.value.is_array() {
            true => self.strings(),
            false => Err(self.invalid("a string, or a list of strings")),
        }
    }
}
