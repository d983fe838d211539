"""The file stores that are granted to the plugin, without a file system in between.

Python sees the same stores: the store `data` is the directory `/data`. For most tools `open` and
`pathlib` are the better choice. This module adds a search that the host runs, globs, atomic
creation and replacement of whole files, and errors that name the limit that was reached.

The changes of a call become visible to others together when the tool has succeeded. If it fails,
the host drops them all.

    store = files.Store("data")
    found = store.search("TODO|FIXME", glob="*.py")
    store.create("todo.txt", f"{len(found.matches)} files")

In a unit test only the stores of `cofferdam.testing.host` are granted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cofferdam import _host
from cofferdam._failure import ToolFailure

_WHOLE = 2**64 - 1

Kind = Literal["file", "directory"]
"""Type of an entry in a store."""


@dataclass(frozen=True)
class Granted:
    """Granted store."""

    name: str
    writable: bool
    """True if the plugin may change files."""


@dataclass(frozen=True)
class Stat:
    """Metadata of a file or directory."""

    kind: Kind
    size: int
    """Length in bytes; 0 for a directory."""


@dataclass(frozen=True)
class Entry:
    """Entry of a listing."""

    name: str
    """Name. Below the listed directory, the path relative to it."""
    kind: Kind


@dataclass(frozen=True)
class Line:
    """A line of a text file."""

    number: int
    """Number of the line, from 1."""
    text: str


@dataclass(frozen=True)
class Match:
    """A file with at least one matching line."""

    path: str
    snippet: str
    """The text around the first match."""
    lines: list[Line]
    """The matching lines."""


@dataclass(frozen=True)
class Found:
    """Result of a search."""

    matches: list[Match]
    """The matching files, sorted bytewise by path."""
    truncated: bool
    """True if matches were dropped because there were too many."""


# Inside `Store`, the method of this name hides the type.
_Entries = list[Entry]


class Error(ToolFailure):
    """Error of an operation. A failed operation has changed nothing. If it is not caught, it
    becomes a failure with this message.
    """


class UnknownStore(Error):
    """No store of this name is granted."""


class NotFound(Error):
    """There is no regular file, or no directory, at the path."""


class AlreadyExists(Error):
    """The path exists already."""


class WrongType(Error):
    """The path, or one of its parents, is an entry of another type."""


class InvalidPath(Error):
    """The path breaks a rule."""


class ReadOnly(Error):
    """The store is read-only."""


class Denied(Error):
    """The grant does not allow the operation."""


class Limit(Error):
    """A limit of the store or of the call is reached."""


class InvalidPattern(Error):
    """A glob or a regex is invalid."""


class NotText(Error):
    """The content is not UTF-8."""


class Unavailable(Error):
    """The store cannot be reached, or another writer has changed the file in the meantime. A retry
    may help.
    """


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
    """Grants nothing. The first parameter of every function but `stores` is a store."""

    def stores(self) -> list[Any]:
        return []

    def __getattr__(self, function: str) -> Callable[..., Any]:
        def refuse(store: str, path: str, *_: Any) -> Any:
            raise error("UnknownStore", store, path)

        return refuse


_bindings: Any = _host.interface("files", _Nobody())


def granted() -> list[Granted]:
    """Returns the granted stores, sorted by name."""
    return [Granted(each.name, each.writable) for each in _bindings.stores()]


@dataclass(frozen=True)
class Store:
    """Store with a given name. The name is not checked until the store is used.

    A path is relative to its store, with `/` between segments. It has no `.` or `..` segment, no
    leading `/`, no `:`.
    """

    name: str

    def stat(self, path: str) -> Stat:
        """Returns the metadata of the entry at `path`; `""` is the root.

        Raises:
            NotFound: If nothing is there.
        """
        found = self._do(_bindings.stat, path)
        return Stat(_kind(found.type), found.size)

    def read(self, path: str) -> bytes:
        """Returns the whole content of a file.

        Raises:
            NotFound: Also for a directory.
            Limit: If the content is larger than a call may hold.
        """
        return self.read_range(path, 0, _WHOLE)

    def read_text(self, path: str) -> str:
        """Returns the whole content of a UTF-8 file, with its line ends as they are.

        Raises:
            NotFound: Also for a directory.
            NotText: If it is not UTF-8.
        """
        try:
            return self.read(path).decode()
        except UnicodeDecodeError:
            raise error("NotText", self.name, path) from None

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Returns at most `length` bytes from `offset`; fewer at the end of the file.

        Raises:
            NotFound: Also for a directory.
        """
        return bytes(self._do(_bindings.read, path, offset, length))

    def create(self, path: str, content: bytes | str) -> None:
        """Writes a new file atomically and creates missing parent directories. A string is written
        as UTF-8.

        Raises:
            AlreadyExists: If the file exists. Of several concurrent creators exactly one succeeds.
        """
        self._do(_bindings.write, path, _bytes(content), _mode("CREATE"))

    def replace(self, path: str, content: bytes | str) -> None:
        """Writes a whole file atomically, whether it exists or not, and creates missing parent
        directories.

        Raises:
            WrongType: If it is a directory.
            Limit: If a quota is exceeded.
            ReadOnly: If the store is read-only.
        """
        self._do(_bindings.write, path, _bytes(content), _mode("REPLACE"))

    def delete(self, path: str) -> None:
        """Deletes a file.

        Raises:
            NotFound: Also for a directory.
        """
        self._do(_bindings.delete, path)

    def create_directory(self, path: str) -> None:
        """Creates a directory and its missing parents.

        Raises:
            AlreadyExists: If it exists.
        """
        self._do(_bindings.create_directory, path)

    def list(self, directory: str = "", *, glob: str | None = None, recursive: bool = False) -> _Entries:
        """Returns the entries of a directory: directories first, then files, each sorted bytewise
        by name. A missing directory has none.

        Args:
            directory: `""` is the root.
            glob: Selects entries: `*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored; a pattern without
                `/` is matched against the last segment of the path.
            recursive: Whether to list everything below the directory.

        Raises:
            InvalidPattern: If the glob is invalid.
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
        """Searches the text files below a directory. Files that are not UTF-8 are skipped.

        Args:
            pattern: In the syntax of the Rust `regex` crate (no lookaround, no back references), at
                most 256 characters, matched per line.
            directory: `""` is the root.
            glob: Searches only files whose path matches.
            case_sensitive: Whether upper and lower case differ.
            recursive: Whether files in subdirectories are searched too.

        Raises:
            InvalidPattern: If the pattern or the glob is invalid.
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


def locate(location: str) -> tuple[Store, str]:
    """Returns the store of an absolute path such as `/data/a/b.txt`, and the path in it. In all
    languages, models use such absolute paths.

    Raises:
        InvalidPath: If it does not begin with `/` and the name of a store.
    """
    root, _, rest = location.partition("/")
    name, _, path = rest.partition("/")
    if root or not name:
        raise InvalidPath(f"`{location}` is not a path in a store, such as `/data/a.txt`", transient=False)
    return Store(name), path


@dataclass(frozen=True)
class _Query:
    """Query for a stand-in, instead of the record of the bindings."""

    pattern: str
    case_sensitive: bool
    glob: str | None
    recursive: bool


def error(case: str, store: str, path: str, text: str = "") -> Error:
    """Returns the exception for a case of `cofferdam:plugin/files.error`."""
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
