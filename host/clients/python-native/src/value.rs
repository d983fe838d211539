//! JSON and Python objects.

use cofferdam::pipe::{CallResult, ProgramCompletion};
use cofferdam::tool::CallRecord;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt as _, intern};
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value;

use crate::router::ProgramMessage;

/// Maximum depth of objects that are encoded here. The package encodes or refuses deeper ones.
const DEPTH_MAX: u32 = 64;

/// Returns an object as JSON, if it consists of the types that JSON has and of nothing that needs
/// the encoder of Python: its errors, its limits, and what it does with other types.
pub(crate) fn encode(object: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    serde_json::to_vec(&PlainObject { object, depth: 0 }).ok()
}

/// Object of exactly the types that JSON has.
struct PlainObject<'o, 'py> {
    object: &'o Bound<'py, PyAny>,
    depth: u32,
}

impl Serialize for PlainObject<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = self.object;
        if let Ok(text) = object.cast_exact::<PyString>() {
            return serializer.serialize_str(text.to_str().map_err(S::Error::custom)?);
        }
        if let Ok(members) = object.cast_exact::<PyDict>() {
            let mut map = serializer.serialize_map(Some(members.len()))?;
            for (name, value) in members {
                let name = name.cast_exact::<PyString>().map_err(S::Error::custom)?;
                let name = name.to_str().map_err(S::Error::custom)?;
                map.serialize_entry(name, &self.inner(&value)?)?;
            }
            return map.end();
        }
        if let Ok(items) = object.cast_exact::<PyList>() {
            return self.sequence(items.iter(), serializer);
        }
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return self.sequence(items.iter(), serializer);
        }
        self.scalar(serializer)
    }
}

impl<'py> PlainObject<'_, 'py> {
    fn inner<'o, E: serde::ser::Error>(
        &self,
        object: &'o Bound<'py, PyAny>,
    ) -> Result<PlainObject<'o, 'py>, E> {
        let depth = self.depth + 1;
        if depth > DEPTH_MAX { Err(E::custom("deep")) } else { Ok(PlainObject { object, depth }) }
    }

    fn sequence<S: Serializer>(
        &self,
        items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(items.len()))?;
        for item in items {
            sequence.serialize_element(&self.inner(&item)?)?;
        }
        sequence.end()
    }

    fn scalar<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = self.object;
        if object.is_none() {
            return serializer.serialize_unit();
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return serializer.serialize_bool(value.is_true());
        }
        if let Ok(number) = object.cast_exact::<PyInt>() {
            return serializer.serialize_i64(number.extract().map_err(S::Error::custom)?);
        }
        if let Ok(number) = object.cast_exact::<PyFloat>() {
            let number = number.value();
            if number.is_finite() {
                return serializer.serialize_f64(number);
            }
        }
        Err(S::Error::custom("another type"))
    }
}

/// Returns the Python object of a JSON value, as `json.loads` does.
pub(crate) fn decode<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::String(text) => text.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(decode(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, value) in members {
                dict.set_item(name, decode(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// Returns a message of the host as the package expects it.
pub(crate) fn message<'py>(
    py: Python<'py>,
    message: ProgramMessage,
) -> PyResult<Bound<'py, PyAny>> {
    match message {
        ProgramMessage::Other(value) => decode(py, &value),
        ProgramMessage::Result(id, CallResult::Refused(value)) => {
            let message = decode(py, &value)?;
            message.set_item(intern!(py, "type"), intern!(py, "result"))?;
            message.set_item(intern!(py, "id"), id)?;
            Ok(message)
        }
        ProgramMessage::Result(id, CallResult::Ended(ended)) => {
            Ok(result(py, id, *ended)?.into_any())
        }
        ProgramMessage::End => Ok(py.None().into_bound(py)),
    }
}

fn result(py: Python<'_>, id: u64, ended: ProgramCompletion) -> PyResult<Bound<'_, PyDict>> {
    let ProgramCompletion { outcome, is_error, result, contents, text, failure, record } = ended;
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "result"))?;
    message.set_item(intern!(py, "id"), id)?;
    message.set_item(intern!(py, "outcome"), outcome)?;
    message.set_item(intern!(py, "is_error"), is_error)?;
    if let Some(result) = &result {
        message.set_item(intern!(py, "result"), decode(py, result)?)?;
    }
    if let Some(contents) = &contents {
        message.set_item(intern!(py, "contents"), decode(py, contents)?)?;
    }
    if let Some(text) = text {
        message.set_item(intern!(py, "text"), text)?;
    }
    if let Some(failure) = &failure {
        message.set_item(intern!(py, "failure"), decode(py, failure)?)?;
    }
    message.set_item(intern!(py, "record_json"), Py::new(py, RecordJson(record))?)?;
    Ok(message)
}

/// Record of a call. Most programs never read it.
#[pyclass(frozen, module = "cofferdam_native")]
struct RecordJson(Box<CallRecord>);

#[pymethods]
impl RecordJson {
    /// Returns the record as JSON.
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.0);
        let json =
            json.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &json))
    }
}
