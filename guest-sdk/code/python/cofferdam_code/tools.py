"""The tools as functions of a program. A call starts at once and returns a future."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

from cofferdam import Blob, Json, Link, Resource, Text
from cofferdam._json import whole
from cofferdam_code import names, result
from cofferdam_code.loop import Loop

FILENAME = "<program>"
"""Name of the program in its code objects."""
_b64 = base64.b64encode
_frame = sys._getframe


class ToolError(Exception):
    """Error of a call of a tool."""

    def __init__(
        self,
        message: str = "",
        *,
        tool: str = "",
        code: str = "failed",
        suggestion: str | None = None,
        value: Any = None,
    ) -> None:
        """Creates an error.

        Args:
            message: The reason.
            tool: Name of the tool.
            code: The kind of error, for example `invalid-arguments`.
            suggestion: Advice for the next attempt.
            value: The error value of the tool.
        """
        super().__init__(message)
        self.message = message
        self.tool = tool
        self.code = code
        self.suggestion = suggestion
        self.value = value

    def __str__(self) -> str:
        return f"{self.message}; {self.suggestion}" if self.suggestion else str(self.message)


ToolError.__module__ = "builtins"


class Call(asyncio.Future):  # type: ignore[type-arg]
    """The future of a call. Using it like its result is an error that says to await it."""

    def __init__(self, tool: str, loop: Loop) -> None:
        super().__init__(loop=loop)
        self._tool = tool

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(f"the call of `{self._tool}` was not awaited, so this is not its result; write `await` before it")

    __getitem__ = __len__ = __contains__ = __setitem__ = __add__ = __lt__ = __gt__ = __iter__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return f"<call of {self._tool}, not awaited>"

    __str__ = __repr__


class Catalog:
    """The tools that a program can call."""

    def __init__(self, text: str) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}
        self.by_name: dict[str, dict[str, Any]] = {}
        try:
            for each in json.loads(text)["tools"]:
                self.by_id[each["id"]] = each
                self.by_name[each["name"]] = each
        except (KeyError, TypeError, ValueError):
            raise ValueError("`catalog` is not a JSON object with the tools") from None

    def unknown(self, name: str) -> str:
        """Returns the message for an identifier that is not in the catalog."""
        near = names.nearest(name, self.by_id)
        if near is not None:
            return f"unknown tool `tools.{name}`; did you mean `tools.{near}`?"
        return f"unknown tool `tools.{name}`; {self.granted()}"

    def granted(self) -> str:
        """Returns a sentence that names the tools."""
        if not self.by_id:
            return "no tools are granted"
        return f"the tools that are granted are: {names.listed(self.by_id)}"


class Calls:
    """The calls of a run that have not ended."""

    def __init__(self, host: Any) -> None:
        self._host = host
        self.loop = Loop(self.settle)
        self.running: dict[int, tuple[Any, str, int]] = {}
        """Future, name of the tool and line of each call, by number."""

    def start(self, tool: str, arguments: Any) -> asyncio.Future[Any]:
        """Starts a call."""
        try:
            text = result.arguments(arguments)
        except result.ResultError as error:
            raise TypeError(f"arguments of `{tool}`: {error}") from None
        number = self._host.start_json(tool, whole(text))
        future = Call(tool, self.loop)
        self.running[number] = (future, tool, _line())
        return future

    def settle(self) -> bool:
        """Waits until calls have ended, and settles their futures. Returns false if no call is
        running.
        """
        if not self.running:
            return False
        ended = self._host.wait_any()
        if not ended:
            raise RuntimeError("the host has lost a call")
        for each in ended:
            future, tool, _ = self.running.pop(each.call, (None, "", 0))
            # A canceled call runs to its end, and the result is dropped.
            if future is None or future.done():
                continue
            if each.error is None:
                future.set_result(_value(each.items))
            else:
                future.set_exception(_error(tool, each.error))
                # The future does not report an error that the program ignores.
                future._log_traceback = False
        return True


    async def drained(self) -> None:
        """Waits until no call is running."""
        while self.running:
            await asyncio.wait([future for future, _, _ in self.running.values()], return_when="FIRST_COMPLETED")


def _line() -> int:
    """Returns the line of the program that is running."""
    frame: Any = _frame(2)
    while frame is not None:
        if frame.f_code.co_filename == FILENAME:
            return int(frame.f_lineno)
        frame = frame.f_back
    return 0


def _error(tool: str, error: Any) -> ToolError:
    return ToolError(error.message, tool=tool, code=error.code, suggestion=error.suggestion, value=error.value)


def _value(items: list[Any]) -> Any:
    if len(items) == 1:
        return _item(items[0])
    return [_item(each) for each in items] if items else None


def _item(item: Any) -> Any:
    if isinstance(item, Text):
        return item.text
    if isinstance(item, Json):
        return item.value
    if isinstance(item, Blob):
        return {"media_type": item.media_type, "data": _b64(item.data).decode("ascii")}
    if isinstance(item, Link):
        return {"uri": item.uri, "name": item.name, "media_type": item.media_type}
    assert isinstance(item, Resource)
    if isinstance(item.body, str):
        return {"uri": item.uri, "media_type": item.media_type, "text": item.body}
    return {"uri": item.uri, "media_type": item.media_type, "data": _b64(item.body).decode("ascii")}


class Tool:
    """A tool as a function of a program."""

    __slots__ = ("__name__", "_calls", "_entry")

    def __init__(self, calls: Calls, entry: Mapping[str, Any]) -> None:
        self._calls = calls
        self._entry = entry
        self.__name__ = entry["id"]

    def __call__(self, *positional: Any, **named: Any) -> asyncio.Future[Any]:
        """Starts a call with keyword arguments, or with one dict of arguments."""
        if positional:
            if len(positional) > 1 or not isinstance(positional[0], Mapping):
                raise TypeError(by_name(self._entry))
            named = {**positional[0], **named}
        return self._calls.start(self._entry["name"], named)

    def __repr__(self) -> str:
        return f"<tool {self._entry['name']}>"


def by_name(entry: Mapping[str, Any]) -> str:
    """Returns the message for positional arguments."""
    shown = ", ".join(f"{name}=…" for name in entry.get("required") or entry.get("properties") or [])
    return f"pass the arguments by name: `tools.{entry['id']}({shown})`"


class Tools:
    """The object `tools` of a program."""

    __slots__ = ("_calls", "_catalog")

    def __init__(self, calls: Calls, catalog: Catalog) -> None:
        object.__setattr__(self, "_calls", calls)
        object.__setattr__(self, "_catalog", catalog)

    def __getattribute__(self, name: str) -> Any:
        # A tool may have the name of an attribute of every object.
        catalog = _get(self, "_catalog")
        entry = catalog.by_id.get(name)
        if entry is not None:
            return Tool(_get(self, "_calls"), entry)
        if name[:2] == "__":
            return _get(self, name)
        raise AttributeError(catalog.unknown(name))

    def __getitem__(self, name: str) -> Tool:
        catalog = _get(self, "_catalog")
        entry = catalog.by_name.get(name) or catalog.by_id.get(name)
        if entry is None:
            raise KeyError(catalog.unknown(name))
        return Tool(_get(self, "_calls"), entry)

    def __dir__(self) -> list[str]:
        return sorted(_get(self, "_catalog").by_id)

    def __iter__(self) -> Any:
        return iter(sorted(_get(self, "_catalog").by_id))

    def __contains__(self, name: object) -> bool:
        return name in _get(self, "_catalog").by_id

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("`tools` cannot be changed")

    def __repr__(self) -> str:
        return f"<tools: {names.listed(_get(self, '_catalog').by_id)}>"


_get = object.__getattribute__
HELPERS = ("search_tools", "describe_tool", "store", "load")
"""Functions of a program besides the tools."""


def helpers(calls: Calls) -> dict[str, Any]:
    """Returns the functions of a program besides the tools."""

    def search_tools(query: str) -> asyncio.Future[Any]:
        """Searches the granted tools."""
        return calls.start("cofferdam_code_search", {"query": query})

    def describe_tool(name: Any) -> asyncio.Future[Any]:
        """Returns the description and the schemas of a tool."""
        called = name._entry["name"] if isinstance(name, Tool) else name
        return calls.start("cofferdam_code_describe", {"name": called})

    def store(key: str, value: Any) -> asyncio.Future[Any]:
        """Stores a value for later runs."""
        return calls.start("cofferdam_code_store", {"key": key, "value": value})

    def load(key: str) -> asyncio.Future[Any]:
        """Returns a stored value, or `None`."""
        return calls.start("cofferdam_code_load", {"key": key})

    return {"search_tools": search_tools, "describe_tool": describe_tool, "store": store, "load": load}
