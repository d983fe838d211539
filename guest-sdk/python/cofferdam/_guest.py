"""Exports of the component, and conversion of results and exceptions for the host.

All work that does not depend on a call happens while the component is made: componentize-py creates
the exports last, and a call begins with the memory as it is then.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import os
import sys
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err  # type: ignore[import-not-found]

from cofferdam import _host, _image, _tool, _traceback, _unexpected
from cofferdam._content import Blob, Content, Json, JsonText, Link, Text
from cofferdam._definition import Annotations, Definition
from cofferdam._failure import ToolFailure
from cofferdam._json import dumps, whole
from cofferdam._tool import TOOLS, Tool

# componentize-py adds the package to the name if `wasi:http` is imported, which has `types` too.
types = _host.imported("types", "cofferdam_plugin_types")

_TOOLS_MAX = 128

_by_name: dict[str, Tool] = {}
_definitions: list[Any] = []
_is_prepared = False
_source = "/"
_LOADING = "the plugin cannot be loaded:"


class Tools:
    """The export `cofferdam:plugin/tools`."""

    def __init__(self) -> None:
        """Prepares the memory. What the imports needed is free by then."""
        global _is_prepared
        # There is an instance for each function of the export.
        if not _is_prepared:
            _is_prepared = True
            _image.prepare(_warm_ups(self))
        _image.fill()

    def list_tools(self) -> list[Any]:
        """Returns the definitions of the tools."""
        return _definitions

    def call_tool(self, name: str, arguments_json: str) -> list[Any]:
        """Runs a tool."""
        try:
            tool = _by_name.get(name)
            if tool is None:
                raise ToolFailure(f"this plugin has no tool `{name}`", transient=False)
            return [_content(each) for each in tool.call(arguments_json)]
        except ToolFailure as failure:
            raise Err(_failure(failure)) from None
        # `sys.exit` in a tool ends only the tool.
        except BaseException as error:
            print(_traceback.brief(error, _source), end="", file=sys.stderr)
            raise Err(_failure(_unexpected.failure(error))) from None
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


def load(main: str, beside: str) -> None:
    """Imports the main module and collects the tools that it and its imports have decorated.

    Args:
        main: Name of the main module.
        beside: A file in the directory that contains all modules of the plugin.

    Raises:
        NotLoaded: If that fails, or a host would reject the tools.
    """
    global _source
    _source = os.path.dirname(beside) + "/"
    try:
        _import(main)
        _take_over(main)
    except BaseException as error:
        raise NotLoaded(f"{_LOADING}\n{_traceback.full(error, _source)}") from None
    _keep_lines()


def _warm_ups(tools: Tools) -> list[Callable[[], None]]:
    """Returns functions that make calls like those of a host."""
    return [lambda: _call_sample(tools), *(functools.partial(each, tools.call_tool) for each in _host.WARM_UP)]


def _call_sample(tools: Tools) -> None:
    # No tool has this name.
    _by_name[" "] = _SAMPLE
    try:
        tools.call_tool(" ", '{"text":"a","number":1}')
    finally:
        del _by_name[" "]


def _sample(text: str, number: int = 0) -> dict[str, Any]:
    """A tool for calls while the component is made."""
    return {"text": text, "number": number}


_SAMPLE = _tool.made(_sample, "sample", None, None, Annotations(), False)


class NotLoaded(Exception):
    """The component cannot be made. The message is for its author; `cofferdam build` searches for
    its first words.
    """


def _import(main: str) -> None:
    if _host.imported("outgoing_handler") is None:
        importlib.import_module(main)
        return
    from cofferdam._http import _install

    _install.install()
    importlib.import_module(main)
    _install.adapt()
    # Imports `urllib.request`, which has to find the transport.
    from cofferdam._http import _warm

    _host.WARM_UP.append(_warm.up)


def _take_over(main: str) -> None:
    if not TOOLS:
        raise TypeError(f"`{main}` has no tools; decorate functions with `@tool`")
    if len(TOOLS) > _TOOLS_MAX:
        raise TypeError(f"a plugin has at most {_TOOLS_MAX} tools, not {len(TOOLS)}")
    seen: set[str] = set()
    for tool in TOOLS:
        name = tool.definition.name
        if name.lower() in seen:
            raise TypeError(f"two tools are called `{name}`")
        seen.add(name.lower())
        _by_name[name] = tool
        _definitions.append(_definition(tool.definition))


def _keep_lines() -> None:
    """Caches the plugin's source lines for tracebacks, because the files do not exist when a tool
    runs.
    """
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and path.startswith(_source):
            lines = linecache.getlines(path)
            # Without a modification time, the entry is never compared with the file.
            linecache.cache[path] = (sum(map(len, lines)), None, lines, path)


def _failure(failure: ToolFailure) -> Any:
    value = None
    if isinstance(failure.value, JsonText):
        value = whole(failure.value.text)
    elif failure.value is not None:
        try:
            value = dumps(failure.value)
        except (TypeError, ValueError):
            print("the value of the failure cannot be written as JSON", file=sys.stderr)
    suggestion = None if failure.suggestion is None else whole(failure.suggestion)
    return types.Failure(whole(failure.message), suggestion, failure.transient, value)


def _content(content: Content) -> Any:
    if isinstance(content, Text):
        return types.Content_Text(whole(content.text))
    if isinstance(content, Json):
        return types.Content_Json(dumps(content.value))
    if isinstance(content, JsonText):
        return types.Content_Json(whole(content.text))
    if isinstance(content, Blob):
        return types.Content_Blob(types.Blob(content.media_type, bytes(content.data)))
    if isinstance(content, Link):
        return types.Content_Link(types.Link(whole(content.uri), whole(content.name), content.media_type))
    if isinstance(content.body, str):
        body = types.ResourceBody_Text(whole(content.body))
    else:
        body = types.ResourceBody_Blob(bytes(content.body))
    return types.Content_Resource(types.EmbeddedResource(whole(content.uri), content.media_type, body))


def _definition(definition: Definition) -> Any:
    hints = definition.annotations
    output = definition.output_schema
    return types.ToolDefinition(
        definition.name,
        definition.title,
        definition.description,
        dumps(definition.input_schema),
        None if output is None else dumps(output),
        types.Annotations(hints.read_only, hints.destructive, hints.idempotent, hints.open_world, hints.long_running),
    )
