"""Calls of other granted tools that run side by side.

`toolbox.call` waits for each call; here the host runs up to 16 calls at once. A called tool runs
with its own grants and limits, in its own sandbox, and its file changes belong to the call that
made it. In a unit test only the tools of `cofferdam.testing.host` are granted.

    counts = tool_calls.call_all(("word_count", {"text": text}) for text in texts)

`start` and `wait_any` give control over the order:

    number = tool_calls.start("word_count", {"text": "to be"})
    for ended in tool_calls.wait_any():
        print(ended.call, ended.value())
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cofferdam import _content, _host
from cofferdam._content import Content
from cofferdam._json import dumps
from cofferdam.toolbox import Ended, Error, Failed, InvalidArguments, TooDeep, UnknownTool, _item

__all__ = [
    "Denied",
    "Ended",
    "EndedCall",
    "Error",
    "Failed",
    "InvalidArguments",
    "LimitReached",
    "TooDeep",
    "UnknownTool",
    "call_all",
    "start",
    "start_json",
    "wait_any",
]


class Denied(Error):
    """The call was denied: by a policy, or by the user who was asked to approve it."""

    code = "denied"


class LimitReached(Error):
    """The plugin has started too many calls."""

    code = "limit"


_ERRORS: dict[str, type[Error]] = {
    each.code: each for each in (UnknownTool, InvalidArguments, Failed, Ended, Denied, TooDeep, LimitReached)
}


@dataclass(frozen=True)
class EndedCall:
    """A call that has ended."""

    call: int
    """Number of the call, as `start` returned it."""
    items: list[Content]
    """Items of the result; empty after an error."""
    error: Error | None = None
    """Error of the call."""

    def value(self) -> Any:
        """Returns the value as a model would see it.

        Raises:
            Error: If there is no value. Its subclasses give the reason.
        """
        if self.error is not None:
            raise self.error
        return _content.value_of(self.items)


class _Nobody:
    """Grants nothing."""

    def __init__(self) -> None:
        self._started = 0
        self._ended: list[EndedCall] = []

    def start(self, name: str, arguments_json: str) -> int:
        self._started += 1
        error = UnknownTool(f"no tool `{name}` was granted", transient=False)
        self._ended.append(EndedCall(self._started, [], error))
        return self._started

    def wait_any(self) -> list[EndedCall]:
        ended, self._ended = self._ended, []
        return ended


_bindings: Any = _host.interface("tool_calls", _Nobody())


def start(name: str, arguments: Mapping[str, Any] | None = None) -> int:
    """Starts a call and returns its number without waiting.

    At most 16 calls run at once; further calls wait until one has ended. Errors are those of the
    ended call, even if the tool does not exist.

    Args:
        name: As in `toolbox.granted`.
        arguments: The arguments as a model would send them; any value with a JSON form.
    """
    return start_json(name, dumps(dict(arguments or {})))


def start_json(name: str, arguments_json: str) -> int:
    """Starts a call with the JSON text of its arguments, as `start` does."""
    number: int = _bindings.start(name, arguments_json)
    return number


def wait_any() -> list[EndedCall]:
    """Waits until a started call has ended.

    Returns:
        All calls that have ended since the last time, in the order of their ends; an empty list if
        no call is running.
    """
    return [_ended(each) for each in _bindings.wait_any()]


def call_all(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """Runs calls side by side and returns their values, in the order of `calls`.

    Every call runs to its end, even if another one fails. Do not use it while calls of `start` are
    running.

    Args:
        calls: Names and arguments of the tools.

    Raises:
        Error: The first error in the order of `calls`.
    """
    numbers = [start(name, arguments) for name, arguments in calls]
    ended: dict[int, EndedCall] = {}
    while len(ended) < len(numbers):
        found = wait_any()
        if not found:
            raise RuntimeError("a call that was started has not ended, and no call is running")
        ended.update((each.call, each) for each in found)
    return [ended[number].value() for number in numbers]


def _ended(each: Any) -> EndedCall:
    if isinstance(each, EndedCall):
        return each
    outcome = each.outcome
    # componentize-py represents a `result` by `Ok` and `Err`.
    if type(outcome).__name__ == "Err":
        return EndedCall(each.call, [], _error(outcome.value))
    return EndedCall(each.call, [_item(item) for item in outcome.value])


def _error(error: Any) -> Error:
    code = error.kind.name.lower().replace("_", "-")
    value = None if error.value is None else json.loads(error.value)
    kind = _ERRORS.get(code, Error)
    made = kind(error.message, suggestion=error.suggestion, transient=error.transient, value=value)
    if isinstance(made, Ended):
        made.error_type = error.error_type or ""
    return made
