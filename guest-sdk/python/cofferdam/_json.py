"""Serializes Python values as JSON."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping, Set
from datetime import date, datetime, time
from enum import Enum
from typing import Any
from uuid import UUID


def dumps(value: Any) -> str:
    """Serializes a value as JSON.

    In addition to the types of `json`: dataclasses and mappings are objects, sets are arrays
    (sorted if possible), enums are their values, dates and times are ISO 8601, bytes are base64.

    Raises:
        TypeError: For a value of any other type.
        ValueError: For a float that is not finite, and for a circular value.
    """
    return whole(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain))


def whole(text: str) -> str:
    """Replaces lone surrogates, which cannot be encoded, by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Plugins have no other codec that could do this.
        return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)
    return text


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return _ordered(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"a value of the type `{type(value).__qualname__}` has no JSON form")


def _ordered(values: Set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)
