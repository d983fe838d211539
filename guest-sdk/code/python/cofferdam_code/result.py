"""Converts the value of a program to JSON.

The encoder is bound here, because a program can replace functions of `json`.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import itertools
import json.encoder
import re
import types
from collections import deque
from collections.abc import Iterator, Mapping, Set
from datetime import date, datetime, time
from typing import Any

BYTES_MAX = 1 << 20
"""Maximum size of the JSON text of a result."""
_DEPTH_MAX = 120
"""Maximum nesting. The host accepts 128 levels, and adds some itself."""
_ITEMS_MAX = 200_000
"""Maximum number of items that are taken from an iterator."""

_LONG_NUMBER = re.compile(r"\d{16}").search
_string: Any = json.encoder.encode_basestring
_make_encoder: Any = json.encoder.c_make_encoder
_join = "".join
_is_dataclass, _fields, _b64 = dataclasses.is_dataclass, dataclasses.fields, base64.b64encode
_iterators = (
    types.GeneratorType, map, filter, zip, enumerate, reversed, range,
    type({}.keys()), type({}.values()), type({}.items()), deque,
)  # fmt: skip


class ResultError(Exception):
    """The value has no JSON form. The message is for the model."""


def encode(value: Any) -> str:
    """Returns the JSON text of the value of a program.

    Raises:
        ResultError: If it contains itself, is too deep or too large.
    """
    text = _encoded(value, "the result")
    if len(text) > BYTES_MAX or (not text.isascii() and len(text.encode("utf-8", "replace")) > BYTES_MAX):
        raise ResultError(
            f"the result has {len(text)} characters of JSON, and at most {BYTES_MAX} bytes are allowed; "
            "return less: filter, aggregate or slice in the program, or keep the value with "
            "`await store(key, value)`"
        )
    return text


def arguments(value: Any) -> str:
    """Returns the JSON text of the arguments of a tool.

    Raises:
        ResultError: If it contains itself or is too deep.
    """
    return _encoded(value, "the argument")


def plain(value: Any) -> str:
    """Returns the JSON text of a value of strings, numbers, lists and dicts, made by this package."""
    return _dumps(value, _refuse)


def _encoded(value: Any, what: str) -> str:
    try:
        # Most values need no conversion, and the encoder is written in C.
        text = _dumps(value, _converted)
        if not _LONG_NUMBER(text) and text.count("[") + text.count("{") <= _DEPTH_MAX:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return _dumps(_plain(value, 0, set(), what), _refuse)
    except RecursionError:
        raise ResultError(_TOO_DEEP.format(what)) from None


_TOO_DEEP = f"{{}} is nested more than {_DEPTH_MAX} levels deep; return a flatter value"


def _dumps(value: Any, default: Any) -> str:
    encoder = _make_encoder({}, default, _string, None, ": ", ", ", False, False, False)
    return _join(encoder(value, 0))


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value)} has no JSON form")


def _plain(value: Any, depth: int, above: set[int], what: str) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth, above, what)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _number(int(value))
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if not isinstance(value, (dict, list, tuple, Mapping)):
        value = _converted(value)
        if not isinstance(value, (dict, list)):
            return value if isinstance(value, str) else _plain(value, depth, above, what)
    if depth >= _DEPTH_MAX:
        raise ResultError(_TOO_DEEP.format(what))
    if id(value) in above:
        raise ResultError(f"{what} contains itself (a circular value), which JSON cannot represent")
    above.add(id(value))
    made: Any
    if isinstance(value, Mapping):
        made = {_key(key): _plain(item, depth + 1, above, what) for key, item in value.items()}
    else:
        made = [_plain(item, depth + 1, above, what) for item in value]
    above.discard(id(value))
    return made


def _number(value: int) -> int | str:
    if -(2**53) <= value <= 2**53:
        return value
    try:
        if int(float(value)) == value:
            return value
    except OverflowError:
        pass
    try:
        return str(value)
    except ValueError:
        # `str` refuses numbers with thousands of digits.
        return hex(value)


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(key.isoformat() if isinstance(key, (date, time)) else key)


def _converted(value: Any) -> Any:
    """Returns another form of a value that is neither a JSON value nor a dict, list or tuple."""
    if isinstance(value, enum.Enum):
        return value.value
    if _is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in _fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"media_type": "application/octet-stream", "data": _b64(value).decode("ascii")}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if hasattr(type(value), "__await__"):
        raise ResultError(
            f"{type(value).__name__} is a value that was not awaited; write `await` before it, or "
            "`await asyncio.gather(*calls)` for a list"
        )
    if isinstance(value, _iterators):
        return _items(value)
    return str(value)


def _items(values: Iterator[Any]) -> list[Any]:
    items = list(itertools.islice(values, _ITEMS_MAX + 1))
    if len(items) > _ITEMS_MAX:
        raise ResultError(f"the result is an iterator of more than {_ITEMS_MAX} items; return fewer")
    return items
