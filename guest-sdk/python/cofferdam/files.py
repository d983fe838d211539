"""The file stores that were granted to the plugin, without a file system between.

Python sees the same stores: one called `data` is the directory `/data`, and `open` and `pathlib` are the way to go for most
tools. This module adds what a file system has not: search at the host's speed, globs, exclusive creation and replacement of whole
files in one step, and errors that say which limit was met.

The changes of a call become visible to others together when the tool has succeeded. If it fails, none remain.

    store = files.Store("data")
    found = store.search("TODO|FIXME", glob="*.py")
    store.create("todo.txt", f"{len(found.matches)} files")

In a unit test no store is granted but those that `cofferdam.testing.host` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cofferdam import _host
from cofferdam._failure import ToolFailure

_WHOLE = 2**64 - 1

Kind = Literal["file", "directory"]
"""The two kinds of entries."""


@dataclass(frozen=True)
class Granted:
    """A store that was granted."""

    name: str
    writable: bool
    """Whether something can be changed in it."""


@dataclass(frozen=True)
class Stat:
    """What is known of a file or directory without reading it."""

    kind: Kind
    size: int
    """Length in bytes; 0 for a directory."""


@dataclass(frozen=True)
class Entry:
    """A line of a listing."""

    name: str
    """Below the listed directory a path from there."""
    kind: Kind


@dataclass(frozen=True)
class Line:
    """A line of a text file."""

    number: int
    """Counted from 1."""
    text: str


@dataclass(frozen=True)
class Match:
    """A file with at least one matching line."""

    path: str
    snippet: str
    """The text around the first match."""
    lines: list[Line]
    """The lines that match."""


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    matches: list[Match]
    """Bytewise by path."""
    truncated: bool
    """Whether something was left out because there was too much."""


# The method of this name hides the type inside of `Store`.
_Entries = list[Entry]


class Error(ToolFailure):
    """An operation was refused. It has changed nothing. Uncaught it is a failure with this text."""


class UnknownStore(Error):
    """No store of that name was granted."""


class NotFound(Error):
    """No regular file, or no directory, at that path."""


class AlreadyExists(Error):
    """The path is taken."""


class WrongType(Error):
    """The path, or one above it, is taken by something of another kind."""


class InvalidPath(Error):
    """The path breaks a rule."""


class ReadOnly(Error):
    """The store may only be read."""


class Denied(Error):
    """The grant does not reach that far."""


class Limit(Error):
    """A limit of the store or of the call."""


class InvalidPattern(Error):
    """A pattern is not valid."""


class NotText(Error):
    """Content that should be text is none."""


class Unavailable(Error):
    """The store cannot be reached, or somebody else has changed the file meanwhile. Trying again may help."""


_ERRORS: dict[str, tuple[type[Error], str]] = {
    "UnknownStore": (UnknownStore, "no store `{store}` was granted"),
    "NotFound": (NotFound, "`{path}` was not found in `{store}`"),
    "AlreadyExists": (AlreadyExists, "`{path}` exists already in `{store}`"),
    "WrongType": (WrongType, ""),
    "InvalidPath": (InvalidPath, ""),
    "ReadOnly": (ReadOnly, "the store `{store}` may only be read"),
    "Denied": (Denied, ""),
    "Limit": (Limit, ""),
    "InvalidPattern": (InvalidPattern, ""),
    "NotText": (NotText, "`{path}` in `{store}` is not UTF-8 text"),
    "Unavailable": (Unavailable, "the store `{store}` cannot be reached"),
}


class _Nobody:
    """Grants nothing: every function but `stores` takes a store first."""

    def stores(self) -> list[Any]:
        return []

    def __getattr__(self, function: str) -> Callable[..., Any]:
        def refuse(store: str, path: str, *_: Any) -> Any:
            raise error("UnknownStore", store, path)

        return refuse


_bindings: Any = _host.interface("files", _Nobody())


def granted() -> list[Granted]:
    """The stores that were granted, by name."""
    return [Granted(each.name, each.writable) for each in _bindings.stores()]


@dataclass(frozen=True)
class Store:
    """A store. Naming one asks for nothing: whether it was granted shows when it is used.

    A path is relative to its store, with `/` between segments. It has no `.` or `..` segment, no leading `/`, no `:`.
    """

    name: str

    def stat(self, path: str) -> Stat:
        """What is at `path`; `""` is the root.

        Raises:
            NotFound: If nothing is.
        """
        found = self._do(_bindings.stat, path)
        return Stat(_kind(found.type), found.size)

    def read(self, path: str) -> bytes:
        """The whole content of a file.

        Raises:
            NotFound: Also for a directory.
            Limit: When it is larger than a call may hold.
        """
        return self.read_range(path, 0, _WHOLE)

    def read_text(self, path: str) -> str:
        """The whole content of a text file in UTF-8, with its line ends as they are.

        Raises:
            NotFound: Also for a directory.
            NotText: If it is not UTF-8.
        """
        try:
            return self.read(path).decode()
        except UnicodeDecodeError:
            raise error("NotText", self.name, path) from None

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on; fewer where the file ends.

        Raises:
            NotFound: Also for a directory.
        """
        return bytes(self._do(_bindings.read, path, offset, length))

    def create(self, path: str, content: bytes | str) -> None:
        """Writes a new file in one step and creates missing directories above it. Text is written as UTF-8.

        Raises:
            AlreadyExists: Of several that create it at the same time exactly one succeeds.
        """
        self._do(_bindings.write, path, _bytes(content), _mode("CREATE"))

    def replace(self, path: str, content: bytes | str) -> None:
        """Writes a whole file in one step, whether it is there or not, and creates missing directories above it.

        Raises:
            WrongType: If it is a directory.
            Limit: If there is no room.
            ReadOnly: If the store may only be read.
        """
        self._do(_bindings.write, path, _bytes(content), _mode("REPLACE"))

    def delete(self, path: str) -> None:
        """Deletes a file.

        Raises:
            NotFound: Also for a directory.
        """
        self._do(_bindings.delete, path)

    def create_directory(self, path: str) -> None:
        """Creates a directory and missing ones above it.

        Raises:
            AlreadyExists: If it is there.
        """
        self._do(_bindings.create_directory, path)

    def list(self, directory: str = "", *, glob: str | None = None, recursive: bool = False) -> _Entries:
        """The children of a directory: directories first, then files, each bytewise by name. A missing directory has none.

        Args:
            directory: `""` is the root.
            glob: Leaves out what does not match: `*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored; a pattern without `/` is compared
                with the last part of the path.
            recursive: Everything below.

        Raises:
            InvalidPattern: If the glob is none.
        """
        return [Entry(each.name, _kind(each.type)) for each in self._do(_bindings.list, directory, glob, recursive)]

    def search(
        self,
        pattern: str,
        directory: str = "",
        *,
        glob: str | None = None,
        case_sensitive: bool = False,
        recursive: bool = True,
    ) -> Found:
        """Searches the text files below a directory. Files that are not UTF-8 are passed over.

        Args:
            pattern: In the syntax of the Rust `regex` crate (no lookaround, no back references), at most 256 characters, matched
                per line.
            directory: `""` is the root.
            glob: Only in files whose path matches.
            case_sensitive: Whether upper and lower case differ.
            recursive: Whether files in directories below are searched too.

        Raises:
            InvalidPattern: If the pattern or the glob is none.
        """
        kind = _bindings.Query if _host.IS_COMPONENT else _Query
        query = kind(pattern, case_sensitive, glob, recursive)
        found = self._do(_bindings.search, directory, query)
        matches = [Match(each.path, each.snippet, _lines(each.lines)) for each in found.matches]
        return Found(matches, found.truncated)

    def _do(self, function: Callable[..., Any], path: str, *arguments: Any) -> Any:
        try:
            return function(self.name, path, *arguments)
        except _host.Err as refused:
            case, text = _host.case(refused.value), _host.text(refused.value)
            raise error(case, self.name, path, text) from None


def locate(place: str) -> tuple[Store, str]:
    """The store of a place such as `/data/a/b.txt`, and the path in it. That is how models are told of files in all languages.

    Raises:
        InvalidPath: If it does not begin with `/` and the name of a store.
    """
    root, _, rest = place.partition("/")
    name, _, path = rest.partition("/")
    if root or not name:
        raise InvalidPath(f"`{place}` is not a place such as `/data/a.txt`", transient=False)
    return Store(name), path


@dataclass(frozen=True)
class _Query:
    """What a stand-in gets in place of the record of the bindings."""

    pattern: str
    case_sensitive: bool
    glob: str | None
    recursive: bool


def error(case: str, store: str, path: str, text: str = "") -> Error:
    """The exception for a case of `cofferdam:plugin/files.error`."""
    kind, message = _ERRORS.get(case, (Unavailable, case))
    transient = True if kind is Unavailable else None
    return kind(text or message.format(store=store, path=path), transient=transient)


def _mode(name: str) -> Any:
    return _bindings.WriteMode[name] if _host.IS_COMPONENT else name.lower()


def _kind(kind: Any) -> Kind:
    return "directory" if getattr(kind, "name", kind).lower() == "directory" else "file"


def _lines(lines: list[Any]) -> list[Line]:
    return [Line(line.number, line.text) for line in lines]


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else bytes(content)
