"""Calls tools the way the host does, through their JSON face and without a host; for pytest, unittest and the like.

    def test_repeat() -> None:
        assert testing.call(repeat, {"text": "ab"}) == "abab"
        with pytest.raises(ToolFailure, match="too often"):
            testing.call(repeat, {"text": "ab", "times": 101})

Missing arguments get their defaults here as they do in the host. What else the host does with what a model sends (converting
`"2"` to 2, checking it against keywords of the schema) does not happen, and what a tool raises comes out as it was raised.

`host` stands in for what a person grants:

    with testing.host(stores={"data": {"a.txt": "hello"}}, secrets={"token": "t"}) as host:
        testing.call(summarize, {"path": "a.txt"})
        assert host.progress == [(1, 2, "reading")]
        assert host.stores["data"]["summary.txt"] == b"5 letters"

Its stores are those of `cofferdam.files`. A tool that opens `/data/a.txt` itself opens it on your machine: pass it the folder.
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
from cofferdam import toolbox as _toolbox
from cofferdam._content import Content
from cofferdam._definition import Definition
from cofferdam._json import dumps
from cofferdam._standins import Host

__all__ = ["Host", "call", "contents", "definition", "host"]


def call(tool: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> Any:
    """Calls a tool and gives the value that the model would see.

    Args:
        tool: A function with `@tool`.
        arguments: What a model would send; anything that has a JSON form.

    Returns:
        `None`, a text, or a JSON value; several items as a list; a blob as `{"media_type": …, "bytes": …}` with its length, a
        resource with a text as `{"uri": …, "media_type": …, "text": …}`, a link as `{"uri": …, "name": …, "media_type": …}`.

    Raises:
        ToolFailure: For arguments that do not fit.
        Exception: What the tool raises.
    """
    return _content.value_of(contents(tool, arguments))


def contents(tool: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> list[Content]:
    """Calls a tool and gives the items of its result.

    Raises:
        ToolFailure: For arguments that do not fit.
        Exception: What the tool raises.
    """
    return _tool.of(tool).call(dumps(dict(arguments or {})))


def definition(tool: Callable[..., Any]) -> Definition:
    """What the tool publishes."""
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
    """Stands in for a host that grants what is passed, as long as the `with` lasts.

    Args:
        stores: File stores in memory: by name, then by path. All can be written to.
        secrets: The secrets that are granted.
        tools: The tools that are granted: functions with `@tool`, or any function that takes one `dict` of arguments.
        answers: The client's answers, in order. A question for which none is left is `client.Unsupported`.
        session: The session that the call belongs to.
        time_left: Seconds until the call would end.
        cancelled: Whether the caller has given up.

    Yields:
        What the tools have said and changed.
    """
    made = Host(
        stores={name: _standins.content(files) for name, files in (stores or {}).items()},
        answers=list(answers or []),
    )
    standins: dict[Any, Any] = {
        _call: _standins.Call(made, session, time_left, cancelled),
        _client: _standins.Client(made),
        _files: _standins.Files(made),
        _secrets: _standins.Secrets(dict(secrets or {})),
        _toolbox: _standins.Toolbox(dict(tools or {})),
    }
    before = {module: module._bindings for module in standins}
    for module, standin in standins.items():
        module._bindings = standin
    try:
        yield made
    finally:
        for module, bindings in before.items():
            module._bindings = bindings
