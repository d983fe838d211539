"""Converts annotations to shapes. A type without a JSON form raises an error while the module is
imported, with its position.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import types
import typing
from datetime import date, datetime, time
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from cofferdam import _docstring, _json, _shape
from cofferdam._shape import MISSING, Property, Shape

_SCALARS: dict[Any, Shape] = {
    Any: _shape.Anything(),
    object: _shape.Anything(),
    None: _shape.Null(),
    type(None): _shape.Null(),
    str: _shape.Scalar("string", (str,)),
    bool: _shape.Scalar("boolean", (bool,)),
    int: _shape.Scalar("integer", (int,)),
    float: _shape.Scalar("number", (int, float), float),
    bytes: _shape.Written({"contentEncoding": "base64"}, _shape.base64_bytes, "base64"),
    datetime: _shape.Written({"format": "date-time"}, datetime.fromisoformat, "a date with a time"),
    date: _shape.Written({"format": "date"}, date.fromisoformat, "a date"),
    time: _shape.Written({"format": "time"}, time.fromisoformat, "a time"),
    UUID: _shape.Written({"format": "uuid"}, UUID, "a UUID"),
}

_ARRAYS: dict[Any, tuple[Any, bool]] = {
    list: (list, False),
    collections.abc.Sequence: (list, False),
    collections.abc.Iterable: (list, False),
    collections.abc.Collection: (list, False),
    set: (set, True),
    frozenset: (frozenset, True),
    collections.abc.Set: (frozenset, True),
}

_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class Reader:
    """Reads the annotations of one function. Each class is read once, so that it can be recursive.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.classes: dict[Any, _shape.Object] = {}

    def refuse(self, why: str) -> TypeError:
        return TypeError(f"{self.where}: {why}")

    def property(
        self,
        name: str,
        annotation: Any,
        *,
        description: str = "",
        default: Any = MISSING,
        may_be_absent: bool = False,
    ) -> Property:
        """Returns a parameter or a field, with the description and keywords from its annotation and
        its docstring.
        """
        keywords: dict[str, Any] = {}
        annotation, extras = _unwrapped(annotation)
        for extra in extras:
            if isinstance(extra, str):
                description = extra
            elif isinstance(extra, dict):
                keywords.update(extra)
        outside, self.where = self.where, f"{self.where}, `{name}`"
        shape = self.shape(annotation)
        default = self._default(shape, default)
        self.where = outside
        return Property(name, shape, description, keywords, default, may_be_absent)

    def _default(self, shape: Shape, default: Any) -> Any:
        if default is MISSING:
            return MISSING
        if default is None:
            if not shape.accepts_null:
                raise self.refuse("the default is `None` and the type does not allow it; write `… | None`")
            return None
        try:
            written = json.loads(_json.dumps(default))
            shape.read(written, "the default")
        except (TypeError, ValueError) as error:
            raise self.refuse(f"the default cannot be published: {error}") from None
        except _shape.Mismatch as mismatch:
            raise self.refuse(str(mismatch)) from None
        return written

    def shape(self, annotation: Any) -> Shape:
        """Returns the shape of a type."""
        annotation, extras = _unwrapped(annotation)
        shape = self._bare(annotation)
        described = [extra for extra in extras if isinstance(extra, (str, dict))]
        return _Described(shape, described) if described else shape

    def _bare(self, annotation: Any) -> Shape:
        try:
            if annotation in _SCALARS:
                return _SCALARS[annotation]
        except TypeError:
            # Types are hashable.
            raise self.refuse(f"`{annotation!r}` is not a type") from None
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            return _shape.Union([self.shape(argument) for argument in arguments])
        if origin is Literal:
            return self._literal(arguments)
        kind = origin or annotation
        if kind in _ARRAYS:
            make, unique = _ARRAYS[kind]
            return _shape.Array(self.shape(arguments[0] if arguments else Any), make, unique)
        if kind is tuple:
            return self._tuple(arguments)
        if kind in _MAPS:
            return self._map(arguments)
        if isinstance(annotation, type):
            return self._class(annotation)
        raise self._unknown(annotation)

    def _literal(self, values: tuple[Any, ...]) -> Shape:
        members: list[tuple[Any, Any]] = []
        for value in values:
            if isinstance(value, Enum):
                members.append((value.value, value))
            elif value is None or isinstance(value, (str, int)):
                members.append((value, value))
            else:
                raise self.refuse(f"`Literal[{value!r}]` has no JSON form")
        return _shape.Choice(members)

    def _tuple(self, arguments: tuple[Any, ...]) -> Shape:
        if not arguments:
            return _shape.Array(_SCALARS[Any], tuple)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _shape.Array(self.shape(arguments[0]), tuple)
        return _shape.Tuple([self.shape(argument) for argument in arguments])

    def _map(self, arguments: tuple[Any, ...]) -> Shape:
        if arguments and arguments[0] is not str:
            raise self.refuse(f"the keys of a JSON object are strings, not `{_name(arguments[0])}`; use `dict[str, …]`")
        return _shape.Map(self.shape(arguments[1] if arguments else Any))

    def _class(self, kind: type) -> Shape:
        if issubclass(kind, Enum):
            return self._enum(kind)
        if kind in self.classes:
            return self.classes[kind]
        if dataclasses.is_dataclass(kind):
            return self._dataclass(kind)
        if typing.is_typeddict(kind):
            return self._typed_dict(kind)
        raise self._unknown(kind)

    def _enum(self, kind: type[Enum]) -> Shape:
        members = _shape.enum_members(kind)
        for value, member in members:
            if not isinstance(value, (str, int)):
                raise self.refuse(f"the value of `{member}` is neither a string nor an integer")
        if not members:
            raise self.refuse(f"`{kind.__qualname__}` has no members")
        own = kind.__dict__.get("__doc__")
        # Default docstring of Python 3.10.
        own = "" if own == "An enumeration." else own
        return _shape.Choice(members, _docstring.read(own).text)

    def _dataclass(self, kind: type) -> Shape:
        docstring = kind.__doc__ or ""
        # Default docstring of `dataclass`.
        if docstring.startswith(f"{kind.__name__}("):
            docstring = ""
        docs = _docstring.read(docstring)
        shape = _shape.Object(kind.__name__, kind, description=docs.text)
        self.classes[kind] = shape
        hints = self.hints(kind)
        for each in dataclasses.fields(kind):
            if not each.init:
                continue
            default = each.default
            if default is dataclasses.MISSING:
                factory = each.default_factory
                default = MISSING if factory is dataclasses.MISSING else factory()
            description = docs.names.get(each.name, "")
            shape.properties.append(
                self.property(each.name, hints[each.name], description=description, default=default)
            )
        return shape

    def _typed_dict(self, kind: Any) -> Shape:
        docs = _docstring.read(kind.__dict__.get("__doc__"))
        shape = _shape.Object(kind.__name__, dict, description=docs.text)
        self.classes[kind] = shape
        for name, hint in self.hints(kind).items():
            annotation, absent = _required(hint, name not in kind.__required_keys__)
            description = docs.names.get(name, "")
            shape.properties.append(self.property(name, annotation, description=description, may_be_absent=absent))
        return shape

    def hints(self, of: Any) -> dict[str, Any]:
        """Returns the annotations of a function or class. Strings are evaluated."""
        try:
            return typing.get_type_hints(of, include_extras=True)
        except NameError as error:
            raise self.refuse(f"{error}; types have to be at the top level of a module") from None

    def _unknown(self, annotation: Any) -> TypeError:
        return self.refuse(f"the type `{_name(annotation)}` has no JSON form; {_advice(annotation)}")


@dataclasses.dataclass
class _Described(Shape):
    """A type with its own description or keywords: an item of a list, a branch of a union."""

    shape: Shape
    extras: list[Any]

    def __post_init__(self) -> None:
        self.accepts_null = self.shape.accepts_null

    def schema(self, definitions: _shape.Definitions) -> _shape.Schema:
        schema = dict(self.shape.schema(definitions))
        for extra in self.extras:
            schema.update({"description": extra} if isinstance(extra, str) else extra)
        return schema

    def read(self, value: Any, at: str) -> Any:
        return self.shape.read(value, at)


def _unwrapped(annotation: Any) -> tuple[Any, list[Any]]:
    """Removes `Annotated`, `NewType` and aliases. Their extras are returned innermost first, so
    that the outermost have priority.
    """
    extras: list[Any] = []
    while True:
        if typing.get_origin(annotation) is Annotated:
            extras = [*annotation.__metadata__, *extras]
            annotation = annotation.__origin__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        else:
            return annotation, extras


def _required(annotation: Any, absent: bool) -> tuple[Any, bool]:
    """Removes `Required` and `NotRequired`. A class does not evaluate them if its annotations are
    strings.
    """
    word = getattr(typing.get_origin(annotation), "_name", "")
    if word in ("Required", "NotRequired"):
        return typing.get_args(annotation)[0], word == "NotRequired"
    return annotation, absent


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _advice(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, tuple):
        return "make it a dataclass"
    if isinstance(annotation, typing.TypeVar):
        return "say which type it is"
    return "take text, numbers, lists, `dict[str, …]`, a dataclass, a `TypedDict`, an `Enum` or a `Literal`"
