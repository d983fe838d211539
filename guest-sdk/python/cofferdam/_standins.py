"""Stand-ins for the host that `cofferdam.testing.host` installs: the interfaces of `wit/`, in
memory.

They are only good enough for unit tests: quotas, grants and the detailed rules for paths exist only
in the host.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cofferdam import _host, _tool, client, files, tool_calls, toolbox
from cofferdam._content import Content, of_returned
from cofferdam._definition import Definition
from cofferdam._failure import ToolFailure


@dataclass
class Host:
    """Reports and changes of tools."""

    stores: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """The files of each store, by path."""
    answers: list[client.Answer] = field(default_factory=list)
    """The remaining answers."""
    questions: list[client.Question] = field(default_factory=list)
    """The questions that the client was asked."""
    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list)
    """Done, total and message of each report."""
    log: list[tuple[str, str]] = field(default_factory=list)
    """Severity and message of each log line."""


def content(given: Mapping[str, bytes | str]) -> dict[str, bytes]:
    """Converts the content of files to bytes."""
    return {path: text.encode() if isinstance(text, str) else bytes(text) for path, text in given.items()}


class Call:
    """`cofferdam:plugin/call`."""

    def __init__(self, host: Host, session: str | None, time_left: float, cancelled: bool) -> None:
        self._host, self._session, self._time_left, self._cancelled = host, session, time_left, cancelled

    def id(self) -> str:
        return "test"

    def session(self) -> str | None:
        return self._session

    def time_left_ms(self) -> float:
        return self._time_left * 1000

    def cancelled(self) -> bool:
        return self._cancelled

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self._host.progress.append((done, total, message))


class Client:
    """`cofferdam:plugin/client`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def can_ask(self, kind: str) -> bool:
        return bool(self._host.answers)

    def ask(self, questions: list[client.Question]) -> list[client.Answer]:
        self._host.questions.extend(questions)
        if len(self._host.answers) < len(questions):
            raise client.Unsupported("the client cannot be asked this")
        return [self._host.answers.pop(0) for _ in questions]

    def log(self, level: str, message: str) -> None:
        self._host.log.append((level, message))


class Secrets:
    """`cofferdam:plugin/secrets`."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def get(self, name: str) -> str:
        if name not in self._values:
            raise _host.Err(None)
        return self._values[name]


class Toolbox:
    """`cofferdam:plugin/toolbox`."""

    def __init__(self, tools: dict[str, Callable[..., Any]]) -> None:
        self._tools = tools

    def list_tools(self) -> list[Definition]:
        return [self._definition(name, function) for name, function in self._tools.items()]

    def call_tool(self, name: str, arguments_json: str) -> list[Content]:
        if name not in self._tools:
            raise toolbox.UnknownTool(f"no tool `{name}` was granted", transient=False)
        function = self._tools[name]
        try:
            if _is_tool(function):
                return _tool.of(function).call(arguments_json)
            return of_returned(function(_tool._parsed(arguments_json)))
        except ToolFailure as failure:
            raise toolbox.Failed(
                failure.message,
                suggestion=failure.suggestion,
                transient=failure.transient,
                value=failure.value,
            ) from failure

    def _definition(self, name: str, function: Callable[..., Any]) -> Definition:
        if _is_tool(function):
            return _tool.of(function).definition
        return Definition(name, function.__doc__ or "", {"type": "object", "properties": {}})


class ToolCalls:
    """`cofferdam:plugin/tool-calls`. A call runs when it is started, and ends with the next wait."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox, self._started = toolbox, 0
        self._ended: list[tool_calls.EndedCall] = []

    def start(self, name: str, arguments_json: str) -> int:
        self._started += 1
        try:
            ended = tool_calls.EndedCall(self._started, self._toolbox.call_tool(name, arguments_json))
        except toolbox.Error as error:
            ended = tool_calls.EndedCall(self._started, [], error)
        except Exception as error:
            message = f"the tool `{name}` ended as `{type(error).__name__}`"
            ended = tool_calls.EndedCall(self._started, [], toolbox.Ended(message))
        self._ended.append(ended)
        return self._started

    def wait_any(self) -> list[tool_calls.EndedCall]:
        ended, self._ended = self._ended, []
        return ended


def _is_tool(function: Callable[..., Any]) -> bool:
    return hasattr(function, _tool._ATTRIBUTE)


@dataclass
class _StoreInfo:
    name: str
    writable: bool


@dataclass
class _EntryInfo:
    name: str
    type: str
    size: int


class Files:
    """`cofferdam:plugin/files`. A directory exists if it contains a file, or if it was created."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._created: dict[str, set[str]] = {name: set() for name in host.stores}

    def stores(self) -> list[_StoreInfo]:
        return [_StoreInfo(name, True) for name in sorted(self._host.stores)]

    def stat(self, store: str, path: str) -> _EntryInfo:
        data = self._files(store, path)
        if path in data:
            return _EntryInfo(path, "file", len(data[path]))
        if path and path not in self._directories(store):
            raise files.error("NotFound", store, path)
        return _EntryInfo(path, "directory", 0)

    def read(self, store: str, path: str, offset: int, length: int) -> bytes:
        data = self._files(store, path)
        if path not in data:
            raise files.error("NotFound", store, path)
        return data[path][offset : offset + length]

    def write(self, store: str, path: str, content: bytes, mode: str) -> None:
        data = self._files(store, path)
        if path in self._directories(store):
            raise files.error("WrongType", store, path, f"`{path}` is a directory")
        if mode == "create" and path in data:
            raise files.error("AlreadyExists", store, path)
        data[path] = content

    def delete(self, store: str, path: str) -> None:
        if self._files(store, path).pop(path, None) is None:
            raise files.error("NotFound", store, path)

    def create_directory(self, store: str, path: str) -> None:
        if path in self._files(store, path) or path in self._directories(store):
            raise files.error("AlreadyExists", store, path)
        self._created[store].add(path)

    def list(self, store: str, directory: str, glob: str | None, recursive: bool) -> list[_EntryInfo]:
        data = self._files(store, directory)
        below = f"{directory}/" if directory else ""
        found = [_EntryInfo(path, "directory", 0) for path in self._directories(store)]
        found += [_EntryInfo(path, "file", len(held)) for path, held in data.items()]
        inside = [each for each in found if each.name.startswith(below)]
        for each in inside:
            each.name = each.name.removeprefix(below)
        kept = [each for each in inside if (recursive or "/" not in each.name) and _fits(each.name, glob)]
        # Directories come first.
        return sorted(kept, key=lambda each: (each.type, each.name.encode()))

    def search(self, store: str, directory: str, query: Any) -> files.Found:
        try:
            pattern = re.compile(query.pattern, 0 if query.case_sensitive else re.IGNORECASE)
        except re.error as error:
            raise files.error("InvalidPattern", store, directory, str(error)) from None
        below = f"{directory}/" if directory else ""
        matches = []
        for entry in self.list(store, directory, query.glob, query.recursive):
            path = below + entry.name
            lines = _matching(self._files(store, path).get(path, b""), pattern)
            if lines:
                matches.append(files.Match(path, lines[0].text, lines))
        return files.Found(sorted(matches, key=lambda match: match.path.encode()), False)

    def _files(self, store: str, path: str) -> dict[str, bytes]:
        if store not in self._host.stores:
            raise files.error("UnknownStore", store, path)
        segments = path.split("/") if path else []
        if any(segment in ("", ".", "..") or ":" in segment for segment in segments):
            raise files.error("InvalidPath", store, path, f"`{path}` is not a path of a store")
        return self._host.stores[store]

    def _directories(self, store: str) -> set[str]:
        paths = [*self._host.stores[store], *(f"{path}/" for path in self._created.get(store, ()))]
        segments = [path.split("/")[:-1] for path in paths]
        return {"/".join(each[:end]) for each in segments for end in range(1, len(each) + 1)}


def _matching(data: bytes, pattern: re.Pattern[str]) -> list[files.Line]:
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return []
    return [files.Line(number, line) for number, line in enumerate(lines, 1) if pattern.search(line)]


def _fits(path: str, glob: str | None) -> bool:
    if glob is None:
        return True
    name = path if "/" in glob else path.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(name.lower(), each.lower()) for each in _alternatives(glob))


def _alternatives(glob: str) -> list[str]:
    """Expands `{a,b}`, and `**/` also to nothing."""
    braces = re.search(r"\{([^{}]*)\}", glob)
    if braces:
        before, after = glob[: braces.start()], glob[braces.end() :]
        return [each for word in braces.group(1).split(",") for each in _alternatives(before + word + after)]
    return [glob, glob.replace("**/", "", 1)] if "**/" in glob else [glob]
