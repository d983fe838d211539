"""Other tools that are granted to the plugin.

A called tool runs with its own grants and limits, in its own sandbox. Its file changes belong to
the call that made it: if that fails, the host drops them. Tools that need the user's approval
cannot be called. In a unit test only the tools of `cofferdam.testing.host` are granted.

    counts = toolbox.call("word_count", {"text": "to be or not to be"})
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cofferdam import _content, _host
from cofferdam._content import Blob, Content, Json, JsonText, Link, Resource, Text
from cofferdam._definition import Annotations, Definition
from cofferdam._failure import ToolFailure
from cofferdam._json import dumps


class Error(ToolFailure):
    """Error of a call without a value. If it is not caught, it becomes a failure with this message.
    """

    code: str = "failed"
    """The reason as a word, for example `unknown-tool`."""


class UnknownTool(Error):
    """No tool of this name is granted."""

    code = "unknown-tool"


class InvalidArguments(Error):
    """The arguments do not match the tool's schema. The message names every problem."""

    code = "invalid-arguments"


class Failed(Error):
    """The tool reported a failure: its `message`, `suggestion`, `transient` and `value`."""


class Ended(Error):
    """The tool ended with an error: a trap, a limit, a denial."""

    code = "ended"
    error_type: str = ""
    """Name of the error type, for example `Trap.Unreachable`."""


class TooDeep(Error):
    """Calls are nested too deeply."""

    code = "too-deep"


class _Nobody:
    """Grants nothing."""

    def list_tools(self) -> list[Any]:
        return []

    def call_tool(self, name: str, arguments_json: str) -> list[Any]:
        raise UnknownTool(f"no tool `{name}` was granted", transient=False)


_bindings: Any = _host.interface("toolbox", _Nobody())


def granted() -> list[Definition]:
    """Returns the granted tools."""
    return [_definition(each) for each in _bindings.list_tools()]


def call(name: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """Calls a tool and returns its value as a model would see it.

    Args:
        name: As in `granted`.
        arguments: The arguments as a model would send them; any value with a JSON form.

    Returns:
        `None`, a string or a JSON value; for several items, a list.

    Raises:
        Error: If there is no value. Its subclasses give the reason.
    """
    return _content.value_of(contents(name, arguments))


def contents(name: str, arguments: Mapping[str, Any] | None = None) -> list[Content]:
    """Calls a tool and returns the items of its result.

    Raises:
        Error: If there is no result. Its subclasses give the reason.
    """
    try:
        found = _bindings.call_tool(name, dumps(dict(arguments or {})))
    except _host.Err as error:
        raise _error(name, error.value) from None
    return [_item(each) for each in found]


def _error(name: str, error: Any) -> Error:
    case, text = _host.case(error), _host.text(error)
    if case == "UnknownTool":
        return UnknownTool(f"no tool `{name}` was granted", transient=False)
    if case == "InvalidArguments":
        return InvalidArguments(text)
    if case == "Failed":
        failure = error.value
        value = None if failure.value is None else json.loads(failure.value)
        return Failed(failure.message, suggestion=failure.suggestion, transient=failure.transient, value=value)
    if case == "Ended":
        ended = Ended(f"the tool `{name}` ended as `{text}`")
        ended.error_type = text
        return ended
    return TooDeep("tools call each other too deeply", transient=False)


def _definition(each: Any) -> Definition:
    if isinstance(each, Definition):
        return each
    hints = each.annotations
    return Definition(
        each.name,
        each.description,
        json.loads(each.input_schema),
        None if each.output_schema is None else json.loads(each.output_schema),
        each.title,
        Annotations(hints.read_only, hints.destructive, hints.idempotent, hints.open_world, hints.long_running),
    )


def _item(item: Any) -> Content:
    if isinstance(item, (Text, Json, JsonText, Blob, Resource, Link)):
        return item
    case, value = _host.case(item), item.value
    if case == "Text":
        return Text(value)
    if case == "Json":
        return Json(json.loads(value))
    if case == "Blob":
        return Blob(value.media_type, value.data)
    if case == "Link":
        return Link(value.uri, value.name, value.media_type)
    return Resource(value.uri, value.body.value, value.media_type)
