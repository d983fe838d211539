"""Makes a tool of a function."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar, overload

from cofferdam import _content, _docstring, _shape, _types
from cofferdam._content import Content
from cofferdam._definition import Annotations, Definition
from cofferdam._failure import ToolFailure

F = TypeVar("F", bound=Callable[..., Any])

TOOLS: list[Tool] = []
"""All decorated functions, in order."""

_ATTRIBUTE = "__cofferdam_tool__"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_GROUP = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Tool:
    """A function as a tool."""

    def __init__(self, function: Callable[..., Any], definition: Definition, parameters: _shape.Object) -> None:
        self.function = function
        self.definition = definition
        self._parameters = parameters

    def call(self, arguments_json: str) -> list[Content]:
        """Calls the function with the arguments of a JSON object.

        Raises:
            ToolFailure: For arguments that do not match.
            Exception: If the function raises it, or its result has no JSON form.
        """
        return _content.of_returned(self.function(**self._read(arguments_json)))

    def _read(self, arguments_json: str) -> dict[str, Any]:
        name = self.definition.name
        arguments = _parsed(arguments_json)
        if not isinstance(arguments, dict):
            raise ToolFailure(f"Arguments for '{name}' are not a JSON object.", transient=False)
        for each in self._parameters.properties:
            if each.required and arguments.get(each.name) is None:
                message = f"Required argument '{each.name}' was not supplied to '{name}'."
                raise ToolFailure(message, transient=False)
        try:
            values: dict[str, Any] = self._parameters.read(arguments, "")
            return values
        except _shape.Mismatch as mismatch:
            raise ToolFailure(f"An argument of '{name}' cannot be used: {mismatch}.", transient=False) from None


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    group: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    long_running: bool | None = None,
    output_schema: bool = False,
) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    group: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    long_running: bool | None = None,
    output_schema: bool = False,
) -> Any:
    """Makes a tool of a function. The function stays as it is, and can be called and tested like
    any other.

    The docstring up to its first section is the description. It is required, because a model knows
    nothing else about the tool. The description of a parameter comes from an `Args:` section in
    Google's style, or from `Annotated[int, "How often."]`. A `dict` there adds keywords of JSON
    Schema, which the host enforces: `Annotated[int, "How often.", {"minimum": 1}]`.

    A parameter without a default is required, unless its type allows `None`: then it is `None` if
    it is missing. A parameter with a default may be omitted or null.

    Types of parameters: `str`, `int`, `float`, `bool`, `None`, `Any`; `list`, `tuple`, `set`,
    `dict[str, T]` and their abstract classes; `Literal`, `Enum` (its values), unions; dataclasses
    and `TypedDict`, also nested and recursive; `bytes` (base64), `datetime`, `date`, `time`, `UUID`
    (strings). Other types raise an error when the module is imported.

    A tool may return `None`, a `str` (text), `Text`, `Json`, `JsonText`, `Blob`, `Resource`, `Link`,
    a list of these, or a value of any type above, which becomes a JSON value.

    Args:
        name: Replaces the function's name: 1 to 128 characters from `A-Z a-z 0-9 _ . -`.
        title: A display name for users.
        group: Name of the group of tools that it belongs to: 1 to 64 characters from
            `A-Z a-z 0-9 _ . -`.
        read_only: The tool changes nothing. This and the next four are hints; `None` means unknown.
        destructive: The tool may destroy something: delete, overwrite, send.
        idempotent: A second call with the same arguments has no further effect.
        open_world: The tool accesses systems outside the host, such as the network.
        long_running: The tool may take minutes.
        output_schema: Publishes the schema of the return type. The host checks each result against
            it.

    Raises:
        TypeError: If the function cannot be a tool. The message names the function and the
            parameter.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        annotations = Annotations(read_only, destructive, idempotent, open_world, long_running)
        called = name or str(getattr(function, "__name__", "?"))
        decorated = made(function, called, title, group, annotations, output_schema)
        TOOLS.append(decorated)
        setattr(function, _ATTRIBUTE, decorated)
        return function

    return decorate if function is None else decorate(function)


def of(function: Callable[..., Any]) -> Tool:
    """Returns the tool of a decorated function.

    Raises:
        TypeError: If it is not decorated.
    """
    found = getattr(function, _ATTRIBUTE, None)
    if not isinstance(found, Tool):
        raise TypeError(f"`{getattr(function, '__name__', function)}` is not a tool; decorate it with `@tool`")
    return found


def made(
    function: Callable[..., Any],
    name: str,
    title: str | None,
    group: str | None,
    annotations: Annotations,
    output: bool,
) -> Tool:
    """Makes a tool of a function.

    Raises:
        TypeError: If the function cannot be a tool.
    """
    where = f"tool `{name}`"
    _check(function, name, where)
    if group is not None and not _GROUP.fullmatch(group):
        raise TypeError(f"{where}: a group has 1 to 64 characters from `A-Z a-z 0-9 _ . -`, not `{group}`")
    docs = _docstring.read(function.__doc__)
    if not docs.text:
        raise TypeError(f"{where}: it has no docstring, which is all that a model knows of it")
    if len(docs.text.encode()) > 4096:
        raise TypeError(f"{where}: its description is longer than 4096 bytes")
    reader = _types.Reader(where)
    hints = reader.hints(function)
    parameters = _shape.Object(name, dict)
    for parameter in inspect.signature(function).parameters.values():
        parameters.properties.append(_property(reader, parameter, hints, docs))
    unknown = docs.names.keys() - {each.name for each in parameters.properties}
    if unknown:
        raise TypeError(f"{where}: the docstring describes `{min(unknown)}`, which is not a parameter")
    output_schema = _output(reader, hints) if output else None
    schema = _shape.complete(parameters)
    if group is not None:
        schema["x-group"] = group
    return Tool(function, Definition(name, docs.text, schema, output_schema, title, annotations), parameters)


def _check(function: Callable[..., Any], name: str, where: str) -> None:
    if not inspect.isfunction(function):
        raise TypeError(f"{where}: only a function can be a tool")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{where}: it is `async`, and a tool is not; nothing else runs in a call that it could wait for"
        )
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{where}: it is a generator; return a list")
    if not _NAME.fullmatch(name):
        raise TypeError(f"{where}: a name is 1 to 128 characters out of `A-Z a-z 0-9 _ . -`")


def _property(
    reader: _types.Reader, parameter: inspect.Parameter, hints: dict[str, Any], docs: _docstring.Docs
) -> _shape.Property:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise reader.refuse(f"`*{name}` stands for any number of parameters; a model needs to know each")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise reader.refuse(f"`{name}` can only be passed by position; a model passes by name")
    if name not in hints:
        raise reader.refuse(f"parameter `{name}` has no type; write `{name}: str`, for example")
    default = _shape.MISSING if parameter.default is parameter.empty else parameter.default
    return reader.property(name, hints[name], description=docs.names.get(name, ""), default=default)


def _output(reader: _types.Reader, hints: dict[str, Any]) -> dict[str, Any]:
    if "return" not in hints:
        raise reader.refuse("an output schema needs the type of the result: `-> …`")
    reader.where = f"{reader.where}, its result"
    return _shape.complete(reader.shape(hints["return"]))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
