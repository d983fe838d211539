"""Types of parameters and results: the JSON Schema of each, and decoding of its values.

Schemas are inlined, because several model APIs mishandle `$ref`. Only recursive classes stay in
`$defs`. In a component the host has checked and converted the arguments before a tool runs, so
errors are not expected here. The checks are for unit tests, which run without a host.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Schema = dict[str, Any]

MISSING = object()
"""Marks the default of a field that has none."""


class Mismatch(Exception):
    """Exception for a value of a wrong type. The message says what was expected, and where."""


class Definitions:
    """Collects the schemas of recursive classes while one schema is made."""

    def __init__(self) -> None:
        self.open: list[Object] = []
        self.names: dict[int, str] = {}
        self.schemas: dict[str, Schema] = {}

    def name(self, shape: Object) -> str:
        """Returns a unique name for a recursive class; two classes can have the same name."""
        if id(shape) not in self.names:
            taken = set(self.names.values())
            name, number = shape.name, 2
            while name in taken:
                name, number = f"{shape.name}{number}", number + 1
            self.names[id(shape)] = name
        return self.names[id(shape)]


class Shape:
    """A type that has a JSON form."""

    accepts_null = False
    """True if null is a valid value. Then the value may be omitted."""

    def schema(self, definitions: Definitions) -> Schema:
        """Returns the JSON Schema."""
        raise NotImplementedError

    def read(self, value: Any, at: str) -> Any:
        """Decodes a JSON value. `at` is its position for error messages."""
        raise NotImplementedError


@dataclass
class Anything(Shape):
    """Any JSON value."""

    accepts_null = True

    def schema(self, definitions: Definitions) -> Schema:
        return {}

    def read(self, value: Any, at: str) -> Any:
        return value


@dataclass
class Null(Shape):
    """Only null."""

    accepts_null = True

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "null"}

    def read(self, value: Any, at: str) -> Any:
        if value is not None:
            raise Mismatch(f"{at} is not null")
        return None


@dataclass
class Scalar(Shape):
    """A string, a number or a boolean."""

    word: str
    types: tuple[type, ...]
    convert: Callable[[Any], Any] | None = None

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": self.word}

    def read(self, value: Any, at: str) -> Any:
        # In Python, a boolean is an `int`; in JSON it is not a number.
        if not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types):
            raise Mismatch(f"{at} is not of the type {self.word}")
        return self.convert(value) if self.convert else value


@dataclass
class Written(Shape):
    """A value that is a string in JSON: bytes, a date."""

    keywords: Schema
    parse: Callable[[str], Any]
    name: str

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "string", **self.keywords}

    def read(self, value: Any, at: str) -> Any:
        try:
            if isinstance(value, str):
                return self.parse(value)
        except ValueError:
            pass
        raise Mismatch(f"{at} is not {self.name}")


def base64_bytes(text: str) -> bytes:
    """Decodes base64, without whitespace or other characters."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


@dataclass
class Choice(Shape):
    """One of several values: `Literal`, `Enum`."""

    members: list[tuple[Any, Any]]
    """JSON value and Python value of each member."""
    description: str = ""

    def __post_init__(self) -> None:
        self.accepts_null = any(value is None for value, _ in self.members)

    def schema(self, definitions: Definitions) -> Schema:
        words = {bool: "boolean", int: "integer", str: "string", type(None): "null"}
        types = list(dict.fromkeys(words[type(value)] for value, _ in self.members))
        schema: Schema = {"type": types[0] if len(types) == 1 else types}
        schema["enum"] = [value for value, _ in self.members]
        if self.description:
            schema["description"] = self.description
        return schema

    def read(self, value: Any, at: str) -> Any:
        for member, meant in self.members:
            if type(member) is type(value) and member == value:
                return meant
        choices = ", ".join(repr(member) for member, _ in self.members)
        raise Mismatch(f"{at} is none of {choices}")


@dataclass
class Array(Shape):
    """`list`, `set`, `tuple[T, ...]`."""

    items: Shape
    make: Callable[[list[Any]], Any] = list
    unique: bool = False

    def schema(self, definitions: Definitions) -> Schema:
        schema: Schema = {"type": "array"}
        # Some model APIs require `items` even if it allows everything.
        schema["items"] = self.items.schema(definitions)
        if self.unique:
            schema["uniqueItems"] = True
        return schema

    def read(self, value: Any, at: str) -> Any:
        return self.make([self.items.read(item, f"{at}[{n}]") for n, item in enumerate(_array(value, at))])


@dataclass
class Tuple(Shape):
    """`tuple[A, B]`."""

    items: list[Shape]

    def schema(self, definitions: Definitions) -> Schema:
        items = [item.schema(definitions) for item in self.items]
        length = len(items)
        return {"type": "array", "prefixItems": items, "minItems": length, "maxItems": length}

    def read(self, value: Any, at: str) -> Any:
        values = _array(value, at)
        if len(values) != len(self.items):
            raise Mismatch(f"{at} has {len(values)} items instead of {len(self.items)}")
        pairs = zip(self.items, values, strict=True)
        return tuple(shape.read(item, f"{at}[{n}]") for n, (shape, item) in enumerate(pairs))


@dataclass
class Map(Shape):
    """`dict[str, T]`."""

    values: Shape

    def schema(self, definitions: Definitions) -> Schema:
        values = self.values.schema(definitions)
        return {"type": "object", "additionalProperties": values or True}

    def read(self, value: Any, at: str) -> Any:
        return {key: self.values.read(item, f"{at}.{key}") for key, item in _object(value, at).items()}


@dataclass
class Property:
    """A field of an object, or a parameter."""

    name: str
    shape: Shape
    description: str = ""
    keywords: Schema = field(default_factory=dict)
    default: Any = MISSING
    """The default as JSON."""
    may_be_absent: bool = False
    """True if a missing value has no default and is left out."""

    @property
    def required(self) -> bool:
        return self.default is MISSING and not self.may_be_absent and not self.shape.accepts_null

    def schema(self, definitions: Definitions) -> Schema:
        schema = dict(self.shape.schema(definitions))
        if self.description:
            schema["description"] = self.description
        if self.default is not MISSING and self.default is not None:
            schema["default"] = self.default
        schema.update(self.keywords)
        return schema


@dataclass
class Object(Shape):
    """A class with fields, or the parameters of a tool."""

    name: str
    make: Callable[..., Any]
    properties: list[Property] = field(default_factory=list)
    description: str = ""

    def schema(self, definitions: Definitions) -> Schema:
        if any(shape is self for shape in definitions.open):
            return {"$ref": f"#/$defs/{definitions.name(self)}"}
        if id(self) in definitions.names:
            return {"$ref": f"#/$defs/{definitions.names[id(self)]}"}
        definitions.open.append(self)
        schema = self._in_place(definitions)
        definitions.open.pop()
        if id(self) not in definitions.names:
            return schema
        name = definitions.names[id(self)]
        definitions.schemas[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def _in_place(self, definitions: Definitions) -> Schema:
        schema: Schema = {"type": "object"}
        if self.description:
            schema["description"] = self.description
        schema["properties"] = {each.name: each.schema(definitions) for each in self.properties}
        required = [each.name for each in self.properties if each.required]
        if required:
            schema["required"] = required
        return schema

    def read(self, value: Any, at: str) -> Any:
        given = _object(value, at)
        values = {}
        for each in self.properties:
            item = given.get(each.name)
            path = f"{at}.{each.name}" if at else each.name
            if item is not None:
                values[each.name] = each.shape.read(item, path)
            elif each.default is not MISSING:
                # Decoded each time, because a default list must not be shared.
                values[each.name] = None if each.default is None else each.shape.read(each.default, path)
            elif each.shape.accepts_null and not each.may_be_absent:
                values[each.name] = None
            elif not each.may_be_absent:
                raise Mismatch(f"{path} is missing")
        return self.make(**values)


@dataclass
class Union(Shape):
    """`A | B`. The first matching branch is used."""

    branches: list[Shape]

    def __post_init__(self) -> None:
        self.accepts_null = any(branch.accepts_null for branch in self.branches)

    def schema(self, definitions: Definitions) -> Schema:
        schemas = [branch.schema(definitions) for branch in self.branches]
        if {} in schemas:
            return {}
        # More models understand `{"type": ["string", "null"]}` than `anyOf`.
        if all(set(schema) == {"type"} for schema in schemas):
            types = [schema["type"] for schema in schemas]
            return {"type": [word for each in types for word in ([each] if isinstance(each, str) else each)]}
        plain = [schema for schema in schemas if schema != {"type": "null"}]
        if len(plain) == 1 and isinstance(plain[0].get("type"), str) and "enum" not in plain[0]:
            return {**plain[0], "type": [plain[0]["type"], "null"]}
        if len(plain) == 1 and "enum" in plain[0]:
            return _with_null(plain[0])
        return {"anyOf": schemas}

    def read(self, value: Any, at: str) -> Any:
        mismatches = []
        for branch in self.branches:
            try:
                return branch.read(value, at)
            except Mismatch as mismatch:
                mismatches.append(str(mismatch))
        raise Mismatch(mismatches[0] if len(mismatches) == 1 else f"{at} is of no type that fits")


def _with_null(choice: Schema) -> Schema:
    types = choice["type"] if isinstance(choice["type"], list) else [choice["type"]]
    if "null" in types:
        return choice
    return {**choice, "type": [*types, "null"], "enum": [*choice["enum"], None]}


def complete(shape: Shape) -> Schema:
    """Returns the complete schema of a type."""
    definitions = Definitions()
    schema = shape.schema(definitions)
    if definitions.schemas:
        schema = {**schema, "$defs": definitions.schemas}
    return schema


def enum_members(kind: type[Enum]) -> list[tuple[Any, Any]]:
    """Returns the members of an enum with their values, which the model sends."""
    return [(_plain(member.value), member) for member in kind]


def _plain(value: Any) -> Any:
    """Converts a member of a class that is both string and enum to a string."""
    return str.__str__(value) if isinstance(value, str) else value


def _array(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise Mismatch(f"{at} is not an array")
    return value


def _object(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mismatch(f"{at or 'the value'} is not an object")
    return value
