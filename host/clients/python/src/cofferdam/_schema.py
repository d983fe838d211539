"""JSON Schemas and descriptions from the signatures and docstrings of Python functions."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    inspect.Parameter.empty: {},
}
_QUALIFIERS = [
    getattr(typing, name)
    for name in ("Required", "NotRequired", "ReadOnly")
    if hasattr(typing, name)
]
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?):\s*$")
_ARGUMENT = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_NAMED_ARGUMENT = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


def input_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the schema of a function's arguments.

    Raises `TypeError` for parameters that an object of arguments cannot fill, and for types
    that have no schema.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    texts = _describe(function)[1]
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter `{name}` of `{function.__name__}` cannot be named")
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError(
                f"`**{name}` of `{function.__name__}` has no schema: pass `input_schema`"
            )
        schema = type_schema(hints.get(name, parameter.empty), f"parameter `{name}`")
        if name in texts and "description" not in schema:
            schema = {**schema, "description": texts[name]}
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            schema = {**schema, "default": parameter.default}
        properties[name] = schema
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def output_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Returns the schema of a function's result if its type is a `TypedDict`."""
    hint = typing.get_type_hints(function, include_extras=True).get("return")
    return type_schema(hint, "the result") if typing.is_typeddict(hint) else None


def description(function: Callable[..., Any]) -> str:
    """Returns the docstring of a function without the sections about arguments and results."""
    return _describe(function)[0]


def type_schema(hint: Any, subject: str) -> dict[str, Any]:
    """Returns the schema of a type. `subject` names the type's user in errors."""
    if isinstance(hint, typing.Hashable) and hint in _SCALARS:
        return dict(_SCALARS[hint])
    if typing.is_typeddict(hint):
        return _object_schema(hint, subject)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = type_schema(arguments[0], subject)
        texts = [text for text in arguments[1:] if isinstance(text, str)]
        return {**schema, "description": texts[0]} if texts else schema
    if origin in _QUALIFIERS:
        return type_schema(arguments[0], subject)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [type_schema(argument, subject) for argument in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if hint is list or origin in (list, Sequence):
        items = type_schema(arguments[0], subject) if arguments else {}
        return {"type": "array", "items": items}
    if hint is dict or origin in (dict, Mapping):
        values = type_schema(arguments[1], subject) if arguments else {}
        return {"type": "object", "additionalProperties": values}
    raise TypeError(f"the type {hint!r} of {subject} has no schema: pass `input_schema`")


def _object_schema(hint: Any, subject: str) -> dict[str, Any]:
    fields = typing.get_type_hints(hint, include_extras=True)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: type_schema(field, subject) for name, field in fields.items()},
    }
    required = sorted(hint.__required_keys__)
    return {**schema, "required": required} if required else schema


def _describe(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Returns the description of a function, and those of its arguments."""
    words: list[str] = []
    texts: dict[str, str] = {}
    section, last = "", ""
    for line in inspect.cleandoc(function.__doc__ or "").splitlines():
        heading = _SECTION.match(line)
        named = _NAMED_ARGUMENT.match(line)
        argument = _ARGUMENT.match(line) if section in ("Args", "Arguments", "Parameters") else None
        if heading:
            section, last = heading.group(1), ""
        elif named or argument:
            last, text = (named or argument).groups()  # type: ignore[union-attr]
            texts[last] = text
        elif last and line.startswith(" "):
            texts[last] = f"{texts[last]} {line.strip()}"
        elif not section and not line.startswith(":"):
            words.append(line)
    return "\n".join(words).strip(), texts
