"""What a tool answers with, item by item."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Union

from cofferdam._json import dumps


@dataclass(frozen=True)
class Text:
    """Text for the model. A tool that returns a `str` returns this."""

    text: str


@dataclass(frozen=True)
class Json:
    """A JSON value. A tool that returns anything but text and contents returns this."""

    value: Any


@dataclass(frozen=True)
class Blob:
    """Bytes with a media type: an image, an archive."""

    media_type: str
    """For example `image/png`."""
    data: bytes


@dataclass(frozen=True)
class Resource:
    """Something that has an address, together with what it holds: `Resource("memo:1", "hello", "text/plain")`."""

    uri: str
    """Where it is from."""
    body: str | bytes
    """Text for the model, or bytes."""
    media_type: str | None = None
    """For example `text/markdown`."""


@dataclass(frozen=True)
class Link:
    """The address of something that can be read on its own."""

    uri: str
    """Where it is."""
    name: str
    """What to call it."""
    media_type: str | None = None
    """For example `text/csv`."""


Content = Union[Text, Json, Blob, Resource, Link]
"""One item of a result."""

_CONTENTS = (Text, Json, Blob, Resource, Link)


def of_returned(returned: Any) -> list[Content]:
    """The items of what a tool has returned.

    A list or tuple in which anything is a content is taken item by item. Any other is a JSON array.
    """
    if returned is None:
        return []
    if isinstance(returned, (list, tuple)) and any(isinstance(item, _CONTENTS) for item in returned):
        return [_of_item(item) for item in returned]
    return [_of_item(returned)]


def _of_item(item: Any) -> Content:
    if isinstance(item, _CONTENTS):
        return item
    # An enum whose members are texts is a value of a choice, and as JSON in any case.
    if type(item) is str:
        return Text(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        raise TypeError("a tool returned bytes without a media type; return `Blob(media_type, data)`")
    return Json(item)


def value_of(contents: list[Content]) -> Any:
    """The value that a model sees of a result: null, a text, or a JSON value; several items as a list of such values."""
    values = [_value_of_item(content) for content in contents]
    if not values:
        return None
    return values[0] if len(values) == 1 else values


def _value_of_item(content: Content) -> Any:
    if isinstance(content, Text):
        return content.text
    if isinstance(content, Json):
        # As the model gets it: tuples are lists, dataclasses are objects.
        return json.loads(dumps(content.value))
    if isinstance(content, Blob):
        return {"media_type": content.media_type, "bytes": len(content.data)}
    if isinstance(content, Link):
        return {"uri": content.uri, "name": content.name, "media_type": content.media_type}
    if isinstance(content.body, str):
        return {"uri": content.uri, "media_type": content.media_type, "text": content.body}
    return {"uri": content.uri, "media_type": content.media_type, "bytes": len(content.body)}
