//! Parquet files.

use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cofferdam_sdk::ToolFailure;
use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, FileReader as _, Length, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use serde_json::{Map, Value as Json};

use super::{Column, Meter, Sink, Source};
use crate::dates;
use crate::files;
use crate::value::{Kind, Value};

/// Maximum bytes that are read at once: a page, or the description of the file.
const CHUNK_BYTES_MAX: usize = 16 << 20;

/// A Parquet file.
pub(crate) struct ParquetFile {
    path: String,
    reader: SerializedFileReader<SharedFile>,
    columns: Vec<Column>,
}

impl ParquetFile {
    pub(crate) fn open(path: &str) -> Result<Self, ToolFailure> {
        let (file, length) = files::open(path)?;
        let file = SharedFile { file: Arc::new(Mutex::new(file)), length };
        let reader = SerializedFileReader::new(file).map_err(|error| unreadable(path, &error))?;
        let chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
        for compression in chunks.map(ColumnChunkMetaData::compression) {
            use Compression::{GZIP, SNAPPY, UNCOMPRESSED};
            if !matches!(compression, UNCOMPRESSED | SNAPPY | GZIP(_)) {
                return Err(ToolFailure::new(format!(
                    "`{path}` is compressed with {compression}, expected Snappy, gzip or none"
                ))
                .suggestion("have the file written with `compression = \"snappy\"`")
                .permanent());
            }
        }
        let schema = reader.metadata().file_metadata().schema();
        let columns = schema
            .get_fields()
            .iter()
            .map(|field| Column { name: field.name().to_owned(), kind: kind(field) })
            .collect();
        Ok(Self { path: path.to_owned(), reader, columns })
    }
}

impl Source for ParquetFile {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn scan(&self, wanted: &[bool], sink: &mut Sink<'_>) -> Result<(), ToolFailure> {
        let failed = |error: &ParquetError| unreadable(&self.path, error);
        let schema = self.reader.metadata().file_metadata().schema();
        let all = schema.get_fields().iter().zip(wanted);
        let mut fields: Vec<_> =
            all.filter(|(_, is_wanted)| **is_wanted).map(|(field, _)| Arc::clone(field)).collect();
        // Rows are counted with a column.
        if fields.is_empty() {
            fields.extend(schema.get_fields().first().cloned());
        }
        let projection = Type::group_type_builder(schema.name())
            .with_fields(fields)
            .build()
            .map_err(|error| failed(&error))?;
        let rows = RowIter::from_file(Some(projection), &self.reader);
        let mut meter = Meter::new(&self.path);
        for row in rows.map_err(|error| failed(&error))? {
            meter.count()?;
            let mut values = row.map_err(|error| failed(&error))?.into_columns().into_iter();
            let row = wanted.iter().map(|is_wanted| {
                let field = if *is_wanted { values.next() } else { None };
                field.map_or(Value::Null, |(_, field)| value(field))
            });
            if sink(row.collect())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn format(&self) -> &'static str {
        "parquet"
    }
}

fn kind(field: &Type) -> Kind {
    if !field.is_primitive() {
        return Kind::Text;
    }
    let is_decimal = field.get_basic_info().converted_type() == ConvertedType::DECIMAL;
    let is_moment = matches!(
        field.get_basic_info().logical_type_ref(),
        Some(LogicalType::Date | LogicalType::Time { .. } | LogicalType::Timestamp { .. })
    ) || matches!(
        field.get_basic_info().converted_type(),
        ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
    );
    match field.get_physical_type() {
        _ if is_decimal => Kind::Number,
        _ if is_moment => Kind::Text,
        Physical::BOOLEAN => Kind::Boolean,
        Physical::INT32 | Physical::INT64 => Kind::Integer,
        Physical::FLOAT | Physical::DOUBLE => Kind::Number,
        Physical::INT96 | Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Kind::Text,
    }
}

fn value(field: Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(boolean) => Value::Boolean(boolean),
        Field::Byte(integer) => Value::Integer(integer.into()),
        Field::Short(integer) => Value::Integer(integer.into()),
        Field::Int(integer) => Value::Integer(integer.into()),
        Field::Long(integer) => Value::Integer(integer),
        Field::UByte(integer) => Value::Integer(integer.into()),
        Field::UShort(integer) => Value::Integer(integer.into()),
        Field::UInt(integer) => Value::Integer(integer.into()),
        #[expect(clippy::cast_precision_loss, reason = "a number has 53 bits")]
        Field::ULong(integer) => {
            i64::try_from(integer).map_or(Value::Number(integer as f64), Value::Integer)
        }
        Field::Float16(number) => Value::Number(number.into()),
        Field::Float(number) => Value::Number(number.into()),
        Field::Double(number) => Value::Number(number),
        // Decimals print as numbers of a fixed precision.
        decimal @ Field::Decimal(_) => {
            decimal.to_string().parse().map_or(Value::Null, Value::Number)
        }
        Field::Str(text) => Value::text(text),
        Field::Bytes(bytes) => Value::text(String::from_utf8_lossy(bytes.data())),
        Field::Date(days) => Value::text(dates::Date::of_days(days.into()).to_string()),
        Field::TimeMillis(millis) => Value::text(dates::of_time(i64::from(millis) * 1_000)),
        Field::TimeMicros(micros) => Value::text(dates::of_time(micros)),
        Field::TimestampMillis(millis) => {
            Value::text(dates::of_micros(millis.saturating_mul(1_000)))
        }
        Field::TimestampMicros(micros) => Value::text(dates::of_micros(micros)),
        nested @ (Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_)) => {
            Value::text(json(nested).to_string())
        }
    }
}

fn json(field: Field) -> Json {
    match field {
        Field::Group(row) => {
            row.into_columns().into_iter().map(|(name, field)| (name, json(field))).collect()
        }
        Field::ListInternal(list) => list.elements().iter().cloned().map(json).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().cloned();
            let entries =
                entries.map(|(key, field)| (value(key).to_text().to_string(), json(field)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
        Field::Str(text) => Json::from(text),
        primitive => value(primitive).shown().0,
    }
}

/// A file that several readers share, because file handles of WASI cannot be duplicated.
#[derive(Clone)]
struct SharedFile {
    file: Arc<Mutex<File>>,
    length: u64,
}

/// A reader that begins at an offset of a file.
struct Section {
    file: SharedFile,
    position: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut file = self.file.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for SharedFile {
    type T = std::io::BufReader<Section>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(std::io::BufReader::new(Section { file: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64);
        if length > CHUNK_BYTES_MAX || end.is_none_or(|end| end > self.length) {
            return Err(ParquetError::General(format!(
                "a part of {length} bytes is outside the file or larger than {CHUNK_BYTES_MAX} bytes"
            )));
        }
        let mut bytes = vec![0; length];
        Section { file: self.clone(), position: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

fn unreadable(path: &str, error: &ParquetError) -> ToolFailure {
    ToolFailure::new(format!("`{path}` cannot be read: {error}")).permanent()
}

#[cfg(test)]
mod tests {
    use super::ParquetFile;
    use crate::files::fixture;
    use crate::source::Source as _;
    use crate::source::tests::texts;
    use crate::value::Kind;

    #[test]
    fn types_are_converted() {
        let file = ParquetFile::open(&fixture("events.parquet")).unwrap();
        let columns: Vec<_> =
            file.columns().iter().map(|column| (column.name.as_str(), column.kind)).collect();
        assert_eq!(
            columns,
            [
                ("id", Kind::Integer),
                ("region", Kind::Text),
                ("amount", Kind::Number),
                ("price", Kind::Number),
                ("day", Kind::Text),
                ("at", Kind::Text),
                ("tags", Kind::Text),
                ("paid", Kind::Boolean),
            ]
        );
        let rows = texts(&file).unwrap();
        assert_eq!(rows[0], r#"1|north|35.5|1.1|2026-01-03|2026-01-03T10:00:00Z|["a","b"]|true"#);
        assert_eq!(rows[2], "3|north|14.25|||2026-01-04T23:59:59.5Z||");
        assert_eq!(rows.len(), 6);
    }

    #[test]
    fn an_unknown_compression_is_refused() {
        let failure = ParquetFile::open(&fixture("zstd.parquet")).err().unwrap();
        assert!(failure.message().contains("is compressed with ZSTD"), "{failure}");
    }
}
