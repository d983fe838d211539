"""Runs programs as the host does, with stand-ins for tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import interpreter
from cofferdam import Blob, ToolFailure, testing

ENTRIES: dict[str, dict[str, Any]] = {
    "word_count": {"properties": ["text", "n"], "required": ["text"], "closed": True},
    "echo": {"properties": ["value"], "required": ["value"], "closed": False},
    "fail": {"properties": ["reason"], "required": ["reason"], "closed": True},
    "image": {"properties": [], "required": [], "closed": True},
    "math.add-up": {"id": "math_add_up", "properties": ["a", "b"], "required": ["a", "b"], "closed": True},
}
NOW = 1_700_000_000_000


def fail(arguments: dict[str, Any]) -> Any:
    raise ToolFailure(arguments["reason"], suggestion="try another reason", value={"code": 7})


def tools(stored: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Returns the tools that programs of tests can call."""

    def store(arguments: dict[str, Any]) -> None:
        stored[arguments["key"]] = arguments["value"]

    return {
        "word_count": lambda arguments: len(arguments["text"].split()),
        "echo": lambda arguments: arguments["value"],
        "fail": fail,
        "image": lambda arguments: Blob("image/png", b"abc"),
        "math.add-up": lambda arguments: arguments["a"] + arguments["b"],
        "cofferdam_code_search": lambda arguments: [{"name": "word_count"}],
        "cofferdam_code_describe": lambda arguments: {"name": arguments["name"]},
        "cofferdam_code_store": store,
        "cofferdam_code_load": lambda arguments: stored.get(arguments["key"]),
    }


CATALOG = json.dumps({"tools": [{"name": name, "id": name, **entry} for name, entry in ENTRIES.items()]})


def run(code: str, stored: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs a program and returns its output.

    Raises:
        ToolFailure: If it fails.
    """
    with testing.host(tools=tools({} if stored is None else stored)):
        made = interpreter.run_code(code, CATALOG, "7", NOW)
    output: dict[str, Any] = json.loads(made.text)
    return output


def failure(code: str, decode: Callable[[str], Any] = json.loads) -> tuple[str, dict[str, Any]]:
    """Runs a program that fails, and returns the message and the value of the failure."""
    try:
        output = run(code)
    except ToolFailure as failed:
        return failed.message, decode(failed.value.text)
    raise AssertionError(f"the program succeeded: {output}")
