//! Questions to the engine that `rquickjs` has no safe function for.

#![allow(unsafe_code, reason = "the only file that calls QuickJS directly")]

use rquickjs::{Ctx, String as JsString, Value, qjs};

/// Class of an object that JSON has no form for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Date,
    Map,
    Set,
    Bytes,
    RegExp,
    Other,
}

/// Returns the class of an object, by its internal fields and not by its prototype.
pub(crate) fn class_of(value: &Value<'_>) -> Class {
    let raw = value.as_raw();
    // SAFETY: the value is alive, and these functions only read its header.
    unsafe {
        if qjs::JS_IsDate(raw) {
            Class::Date
        } else if qjs::JS_IsMap(raw) {
            Class::Map
        } else if qjs::JS_IsSet(raw) {
            Class::Set
        } else if qjs::JS_IsArrayBuffer(raw)
            || qjs::JS_GetTypedArrayType(raw) == qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8 as i32
        {
            Class::Bytes
        } else if qjs::JS_IsRegExp(raw) {
            Class::RegExp
        } else {
            Class::Other
        }
    }
}

/// Passes the UTF-8 of a string to `read`. Lone surrogates become replacement characters. `None` if
/// memory is exhausted.
#[allow(clippy::unnecessary_cast, reason = "the length has another type on other targets")]
pub(crate) fn with_text<R>(string: &JsString<'_>, read: impl FnOnce(&str) -> R) -> Option<R> {
    let ctx = string.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the pointer is valid for `length` bytes until it is freed below.
    unsafe {
        let start = qjs::JS_ToCStringLen(ctx, &raw mut length, string.as_raw());
        if start.is_null() {
            return None;
        }
        let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length as usize);
        let result = match std::str::from_utf8(bytes) {
            Ok(text) => read(text),
            Err(_) => read(&String::from_utf8_lossy(bytes)),
        };
        qjs::JS_FreeCString(ctx, start);
        Some(result)
    }
}

/// Passes the contents of an `ArrayBuffer` or `Uint8Array` to `read`.
pub(crate) fn with_bytes<R>(value: &Value<'_>, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let ctx = value.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the pointer is valid for `length` bytes while the value is alive and not resized,
    // and `read` runs no program.
    unsafe {
        let start = if qjs::JS_IsArrayBuffer(value.as_raw()) {
            qjs::JS_GetArrayBuffer(ctx, &raw mut length, value.as_raw())
        } else {
            qjs::JS_GetUint8Array(ctx, &raw mut length, value.as_raw())
        };
        if start.is_null() {
            let _ = value.ctx().catch();
            return (length == 0).then(|| read(&[]));
        }
        Some(read(std::slice::from_raw_parts(start, length as usize)))
    }
}

/// Returns the string that a primitive value converts to.
pub(crate) fn to_string<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
) -> rquickjs::Result<JsString<'js>> {
    let _ = ctx;
    value.get::<rquickjs::Coerced<JsString<'js>>>().map(|text| text.0)
}
