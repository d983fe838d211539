"""Content items of a tool's result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Union

from cofferdam._json import dumps


@dataclass(frozen=True)
class Text:
    """Text for the model. A returned `str` becomes this."""

    text: str


@dataclass(frozen=True)
class Json:
    """A JSON value. A returned value that is neither `str` nor content becomes this."""

    value: Any


@dataclass(frozen=True)
class JsonText:
    """A JSON value that is serialized already. A `ToolFailure` accepts it as its `value` too."""

    text: str


@dataclass(frozen=True)
class Blob:
    """Bytes with a media type, such as an image or an archive."""

    media_type: str
    """Media type, for example `image/png`."""
    data: bytes


@dataclass(frozen=True)
class Resource:
    """A resource with its content: `Resource("memo:1", "hello", "text/plain")`."""

    uri: str
    """Address of the resource."""
    body: str | bytes
    """Text for the model, or bytes."""
    media_type: str | None = None
    """Media type, for example `text/markdown`."""


@dataclass(frozen=True)
class Link:
    """The address of a resource that can be read separately."""

    uri: str
    """Address of the resource."""
    name: str
    """Display name."""
    media_type: str | None = None
    """Media type, for example `text/csv`."""


Content = Union[Text, Json, JsonText, Blob, Resource, Link]
"""One item of a result."""

_CONTENTS = (Text, Json, JsonText, Blob, Resource, Link)


def of_returned(returned: Any) -> list[Content]:
    """Converts the return value of a tool to content items.

    A list or tuple that contains any content item is converted item by item. Any other is a JSON
    array.
    """
    if returned is None:
        return []
    if isinstance(returned, (list, tuple)) and any(isinstance(item, _CONTENTS) for item in returned):
        return [_of_item(item) for item in returned]
    return [_of_item(returned)]


def _of_item(item: Any) -> Content:
    if isinstance(item, _CONTENTS):
        return item
    # A member of an enum of strings is a JSON value, not text.
    if type(item) is str:
        return Text(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        raise TypeError("a tool returned bytes without a media type; return `Blob(media_type, data)`")
    return Json(item)


def value_of(contents: list[Content]) -> Any:
    """Returns the value that a model sees for a result: null, a string, or a JSON value; for
    several items, a list of such values.
    """
    values = [_value_of_item(content) for content in contents]
    if not values:
        return None
    return values[0] if len(values) == 1 else values


def _value_of_item(content: Content) -> Any:
    if isinstance(content, Text):
        return content.text
    if isinstance(content, Json):
        # Converted as for the model: tuples become lists, dataclasses become objects.
        return json.loads(dumps(content.value))
    if isinstance(content, JsonText):
        return json.loads(content.text)
    if isinstance(content, Blob):
        return {"media_type": content.media_type, "bytes": len(content.data)}
    if isinstance(content, Link):
        return {"uri": content.uri, "name": content.name, "media_type": content.media_type}
    if isinstance(content.body, str):
        return {"uri": content.uri, "media_type": content.media_type, "text": content.body}
    return {"uri": content.uri, "media_type": content.media_type, "bytes": len(content.body)}
