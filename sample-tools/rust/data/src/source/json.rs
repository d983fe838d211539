//! JSON files: an array of objects, or objects one after another, such as in JSON Lines.

use std::cell::Cell;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::rc::Rc;

use cofferdam_sdk::ToolFailure;
use serde::de::{self, DeserializeSeed, Deserializer as _, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value as Json};

use super::csv::{reader, unreadable};
use super::{Column, Meter, Sink, Source};
use crate::value::{Kind, Value};

/// Number of objects whose keys become columns.
const SAMPLE_OBJECTS: u64 = 1_000;
/// Maximum bytes of an object.
const OBJECT_BYTES_MAX: u64 = 2 << 20;
/// Maximum number of columns.
const COLUMNS_MAX: usize = 2_000;

/// A file of JSON objects.
pub(crate) struct JsonFile {
    path: String,
    is_compressed: bool,
    columns: Vec<Column>,
}

type Object = Map<String, Json>;
type Each<'e> = dyn FnMut(Object) -> Result<ControlFlow<()>, ToolFailure> + 'e;

impl JsonFile {
    pub(crate) fn open(path: &str, is_compressed: bool) -> Result<Self, ToolFailure> {
        let mut file = Self { path: path.to_owned(), is_compressed, columns: Vec::new() };
        let mut kinds: indexed::Kinds = indexed::Kinds::default();
        let mut count = 0;
        file.objects(&mut |object| {
            count += 1;
            for (key, json) in object {
                kinds.add(key, Value::of_json(json).kind());
            }
            if kinds.len() > COLUMNS_MAX {
                return Err(ToolFailure::new(format!(
                    "the objects of `{path}` have more than {COLUMNS_MAX} different keys"
                ))
                .permanent());
            }
            let is_enough = count >= SAMPLE_OBJECTS;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if count == 0 {
            return Err(ToolFailure::new(format!("`{path}` has no objects")).permanent());
        }
        file.columns = kinds.into_columns();
        Ok(file)
    }

    fn objects(&self, each: &mut Each<'_>) -> Result<(), ToolFailure> {
        let left = Rc::new(Cell::new(OBJECT_BYTES_MAX));
        let limited =
            Limited { inner: reader(&self.path, self.is_compressed)?, left: Rc::clone(&left) };
        let mut reader = BufReader::new(limited);
        let mut failure = None;
        let first = first_byte(&mut reader).map_err(|error| unreadable(&self.path, &error))?;
        let mut objects =
            Objects { path: &self.path, count: 0, left: &left, each, failure: &mut failure };
        let read = if first == Some(b'[') {
            let mut json = Deserializer::from_reader(reader);
            json.deserialize_seq(objects)
        } else {
            let mut read = Ok(());
            for json in Deserializer::from_reader(reader).into_iter::<Json>() {
                read = json.and_then(|json| objects.pass(json));
                if read.is_err() {
                    break;
                }
            }
            read
        };
        match (read, failure) {
            (_, Some(ended)) => ended.map_or(Ok(()), Err),
            (Ok(()), None) => Ok(()),
            (Err(error), None) => Err(unreadable(&self.path, &error)),
        }
    }
}

impl Source for JsonFile {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn scan(&self, wanted: &[bool], sink: &mut Sink<'_>) -> Result<(), ToolFailure> {
        let mut meter = Meter::new(&self.path);
        self.objects(&mut |mut object| {
            meter.count()?;
            let cells = self.columns.iter().zip(wanted);
            let row = cells.map(|(column, is_wanted)| match object.get_mut(&column.name) {
                Some(json) if *is_wanted => Value::of_json(json.take()),
                _ => Value::Null,
            });
            sink(row.collect())
        })
    }

    fn format(&self) -> &'static str {
        "json"
    }
}

/// Passes objects on until the receiver breaks or fails.
struct Objects<'o, 'e> {
    path: &'o str,
    count: u64,
    left: &'o Cell<u64>,
    each: &'o mut Each<'e>,
    /// The reason for the end, if the receiver ended: a failure, or none for a break.
    failure: &'o mut Option<Option<ToolFailure>>,
}

impl Objects<'_, '_> {
    fn pass(&mut self, json: Json) -> Result<(), serde_json::Error> {
        self.count += 1;
        self.left.set(OBJECT_BYTES_MAX);
        let ended = match json {
            Json::Object(object) => (self.each)(object),
            _ => Err(ToolFailure::new(format!(
                "item {} of `{}` is not an object",
                self.count, self.path
            ))
            .suggestion("query files whose items are objects: their keys are the columns")
            .permanent()),
        };
        *self.failure = match ended {
            Ok(ControlFlow::Continue(())) => return Ok(()),
            Ok(ControlFlow::Break(())) => Some(None),
            Err(failure) => Some(Some(failure)),
        };
        Err(de::Error::custom("ended"))
    }
}

impl<'de> Visitor<'de> for Objects<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Item(&mut self))?.is_some() {}
        Ok(())
    }
}

/// Passes one item on.
struct Item<'i, 'o, 'e>(&'i mut Objects<'o, 'e>);

impl<'de> DeserializeSeed<'de> for Item<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let json = serde::Deserialize::deserialize(json)?;
        self.0.pass(json).map_err(de::Error::custom)
    }
}

/// A reader that fails after a number of bytes, until the number is set again.
struct Limited {
    inner: Box<dyn Read>,
    left: Rc<Cell<u64>>,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64).ok_or_else(|| {
            std::io::Error::other(format!("an object has more than {OBJECT_BYTES_MAX} bytes"))
        })?;
        self.left.set(left);
        Ok(read)
    }
}

/// Skips a byte order mark and white space, and returns the next byte without reading it.
fn first_byte(reader: &mut impl BufRead) -> std::io::Result<Option<u8>> {
    if reader.fill_buf()?.starts_with(b"\xEF\xBB\xBF") {
        reader.consume(3);
    }
    loop {
        let buffer = reader.fill_buf()?;
        let Some(byte) = buffer.first().copied() else { return Ok(None) };
        let blanks = buffer.iter().take_while(|it| it.is_ascii_whitespace()).count();
        if blanks == 0 {
            return Ok(Some(byte));
        }
        reader.consume(blanks);
    }
}

mod indexed {
    //! Columns in the order in which their keys were first seen.

    use std::collections::HashMap;

    use super::{Column, Kind};

    #[derive(Default)]
    pub(super) struct Kinds {
        indices: HashMap<String, usize>,
        kinds: Vec<Column>,
    }

    impl Kinds {
        pub(super) fn add(&mut self, key: String, kind: Kind) {
            let index = self.indices.get(&key).and_then(|index| self.kinds.get_mut(*index));
            if let Some(column) = index {
                column.kind = column.kind.with(kind);
            } else {
                self.indices.insert(key.clone(), self.kinds.len());
                self.kinds.push(Column { name: key, kind });
            }
        }

        pub(super) fn len(&self) -> usize {
            self.kinds.len()
        }

        pub(super) fn into_columns(self) -> Vec<Column> {
            self.kinds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::JsonFile;
    use crate::files::fixture;
    use crate::source::Source as _;
    use crate::source::tests::texts;

    #[test]
    fn arrays_and_lines_are_read() {
        let regions = JsonFile::open(&fixture("regions.json"), false).unwrap();
        let rows = texts(&regions).unwrap();
        assert_eq!(rows[0], r#"north|Ada|4|{"city":"Ulm","zip":"89073"}"#);
        assert_eq!(rows[2], "west||2.5|");
        let orders = JsonFile::open(&fixture("orders.jsonl"), false).unwrap();
        let rows = texts(&orders).unwrap();
        assert_eq!(rows[2], "9007199254740993|tea|[]||");
        let names: Vec<_> = orders.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["id", "product", "tags", "placed", "note"]);
    }

    #[test]
    fn other_json_is_refused() {
        let check = |content: &str, expected: &str| {
            let path = std::env::temp_dir().join(format!("{}-json.json", std::process::id()));
            std::fs::write(&path, content).unwrap();
            let failure = JsonFile::open(path.to_str().unwrap(), false).err().unwrap();
            assert!(failure.message().contains(expected), "{failure}");
        };
        check("", "has no objects");
        check("[]", "has no objects");
        check("[1]", "item 1 of");
        check("3", "is not an object");
        check("[{\"a\": 1}, ", "EOF while parsing");
        check("{\"a\": 1} {\"a\"", "EOF while parsing");
        check(&format!("[{{\"a\": \"{}\"}}]", "x".repeat(3 << 20)), "more than 2097152 bytes");
        check(&"[".repeat(100_000), "recursion limit");
    }
}
