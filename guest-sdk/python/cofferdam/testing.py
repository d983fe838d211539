"""Calls tools as the host does, with JSON, but without a host; for pytest, unittest and similar.

    def test_repeat() -> None:
        assert testing.call(repeat, {"text": "ab"}) == "abab"
        with pytest.raises(ToolFailure, match="too often"):
            testing.call(repeat, {"text": "ab", "times": 101})

Missing arguments get their defaults as in the host. Other steps of the host do not happen:
converting `"2"` to 2, checking keywords of the schema. Exceptions of the tool are passed on
unchanged.

`host` replaces the host and its grants:

    with testing.host(stores={"data": {"a.txt": "hello"}}, secrets={"token": "t"}) as host:
        testing.call(summarize, {"path": "a.txt"})
        assert host.progress == [(1, 2, "reading")]
        assert host.stores["data"]["summary.txt"] == b"5 letters"

Only `cofferdam.files` uses its stores. A tool that opens `/data/a.txt` itself opens it on your
machine: pass it the directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cofferdam import _content, _standins, _tool
from cofferdam import call as _call
from cofferdam import client as _client
from cofferdam import files as _files
from cofferdam import secrets as _secrets
from cofferdam import tool_calls as _tool_calls
from cofferdam import toolbox as _toolbox
from cofferdam._content import Content
from cofferdam._definition import Definition
from cofferdam._json import dumps
from cofferdam._standins import Host

__all__ = ["Host", "call", "contents", "definition", "host"]


def call(tool: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> Any:
    """Calls a tool and returns the value that the model would see.

    Args:
        tool: A function with `@tool`.
        arguments: The model's arguments; any value with a JSON form.

    Returns:
        `None`, a string, or a JSON value; for several items, a list. A blob is shown as
        `{"media_type": …, "bytes": …}` with its length, a resource with text as
        `{"uri": …, "media_type": …, "text": …}`, a link as
        `{"uri": …, "name": …, "media_type": …}`.

    Raises:
        ToolFailure: For arguments that do not match.
        Exception: If the tool raises it.
    """
    return _content.value_of(contents(tool, arguments))


def contents(tool: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> list[Content]:
    """Calls a tool and returns the items of its result.

    Raises:
        ToolFailure: For arguments that do not match.
        Exception: If the tool raises it.
    """
    return _tool.of(tool).call(dumps(dict(arguments or {})))


def definition(tool: Callable[..., Any]) -> Definition:
    """Returns the definition that the tool publishes."""
    return _tool.of(tool).definition


@contextmanager
def host(
    *,
    stores: Mapping[str, Mapping[str, bytes | str]] | None = None,
    secrets: Mapping[str, str] | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    answers: list[_client.Answer] | None = None,
    session: str | None = None,
    time_left: float = 30.0,
    cancelled: bool = False,
) -> Iterator[Host]:
    """Replaces the host inside the `with` statement.

    Args:
        stores: File stores in memory: by name, then by path. All are writable.
        secrets: The granted secrets.
        tools: The granted tools: functions with `@tool`, or any function that takes one `dict` of
            arguments.
        answers: The client's answers, in order. Further questions raise `client.Unsupported`.
        session: The session of the call.
        time_left: Seconds until the deadline of the call.
        cancelled: Whether the caller has canceled the call.

    Yields:
        The reports and changes of the tools.
    """
    made = Host(
        stores={name: _standins.content(files) for name, files in (stores or {}).items()},
        answers=list(answers or []),
    )
    toolbox = _standins.Toolbox(dict(tools or {}))
    standins: dict[Any, Any] = {
        _call: _standins.Call(made, session, time_left, cancelled),
        _client: _standins.Client(made),
        _files: _standins.Files(made),
        _secrets: _standins.Secrets(dict(secrets or {})),
        _tool_calls: _standins.ToolCalls(toolbox),
        _toolbox: toolbox,
    }
    before = {module: module._bindings for module in standins}
    for module, standin in standins.items():
        module._bindings = standin
    try:
        yield made
    finally:
        for module, bindings in before.items():
            module._bindings = bindings
