"""Tests the definitions of functions, and the errors while the module is imported."""

import sys
import unittest
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict

from cofferdam import testing, tool


class Color(Enum):
    """A color of the house."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """A place.

    Attributes:
        x: To the right.
    """

    x: int
    y: Annotated[int, "Upwards."] = 0
    tags: list[str] = field(default_factory=list)


@dataclass
class Undocumented:
    size: int


@dataclass
class Tree:
    """A tree."""

    name: str
    children: "list[Tree]"


class Options(TypedDict, total=False):
    """How to do it."""

    depth: int
    name: str | None


Email = NewType("Email", str)


class Pair(NamedTuple):
    a: int
    b: int


def schema_of(annotation: Any) -> Any:
    """Returns the schema of a parameter of this type."""

    def sample(value: Any) -> None:
        """Does something."""

    sample.__annotations__["value"] = annotation
    return testing.definition(tool(sample)).input_schema["properties"]["value"]


class Types(unittest.TestCase):
    def check(self, annotation: Any, expected: Any) -> None:
        with self.subTest(str(annotation)):
            self.assertEqual(schema_of(annotation), expected)

    def test_plain_types(self) -> None:
        self.check(str, {"type": "string"})
        self.check(int, {"type": "integer"})
        self.check(float, {"type": "number"})
        self.check(bool, {"type": "boolean"})
        self.check(Any, {})
        self.check(Email, {"type": "string"})
        self.check(bytes, {"type": "string", "contentEncoding": "base64"})
        self.check(datetime, {"type": "string", "format": "date-time"})
        self.check(date, {"type": "string", "format": "date"})
        self.check(uuid.UUID, {"type": "string", "format": "uuid"})

    def test_collections(self) -> None:
        self.check(list[int], {"type": "array", "items": {"type": "integer"}})
        self.check(list, {"type": "array", "items": {}})
        self.check(Sequence[str], {"type": "array", "items": {"type": "string"}})
        self.check(tuple[int, ...], {"type": "array", "items": {"type": "integer"}})
        self.check(set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
        two = [{"type": "integer"}, {"type": "string"}]
        self.check(tuple[int, str], {"type": "array", "prefixItems": two, "minItems": 2, "maxItems": 2})
        self.check(Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}})
        self.check(dict[str, Any], {"type": "object", "additionalProperties": True})

    def test_choices(self) -> None:
        self.check(Literal["a", "b"], {"type": "string", "enum": ["a", "b"]})
        self.check(Literal["a", 1], {"type": ["string", "integer"], "enum": ["a", 1]})
        red = {"type": "string", "enum": ["red", "blue"], "description": "A color of the house."}
        self.check(Color, red)
        self.check(Level, {"type": "integer", "enum": [1, 2]})
        self.check(Literal["a"] | None, {"type": ["string", "null"], "enum": ["a", None]})

    def test_unions(self) -> None:
        self.check(int | None, {"type": ["integer", "null"]})
        self.check(int | str, {"type": ["integer", "string"]})
        self.check(list[int] | None, {"type": ["array", "null"], "items": {"type": "integer"}})
        branches = [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]
        self.check(list[int] | str, {"anyOf": branches})

    def test_classes(self) -> None:
        properties = {
            "x": {"type": "integer", "description": "To the right."},
            "y": {"type": "integer", "description": "Upwards.", "default": 0},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        }
        point = {"type": "object", "description": "A place.", "properties": properties, "required": ["x"]}
        self.check(Point, point)
        self.check(Undocumented, {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]})
        options = {"depth": {"type": "integer"}, "name": {"type": ["string", "null"]}}
        self.check(Options, {"type": "object", "description": "How to do it.", "properties": options})

    def test_words_and_keywords(self) -> None:
        self.check(
            Annotated[int, "How often.", {"minimum": 1}], {"type": "integer", "description": "How often.", "minimum": 1}
        )
        self.check(
            list[Annotated[str, "A name."]], {"type": "array", "items": {"type": "string", "description": "A name."}}
        )

    def test_a_class_that_contains_itself(self) -> None:
        def plant(tree: Tree) -> None:
            """Plants a tree."""

        schema = testing.definition(tool(plant)).input_schema
        self.assertEqual(schema["properties"]["tree"], {"$ref": "#/$defs/Tree"})
        children = schema["$defs"]["Tree"]["properties"]["children"]
        self.assertEqual(children, {"type": "array", "items": {"$ref": "#/$defs/Tree"}})


class Definitions(unittest.TestCase):
    def test_everything_that_a_function_says(self) -> None:
        @tool(name="cut.v1", title="Cut", read_only=True, destructive=False, output_schema=True)
        def cut(text: str, at: int = 3, end: str | None = None) -> list[str]:
            """Cuts a text.

            The text is not changed.

            Args:
                text: The text, which may
                    be long.
                at (int): Where.

            Returns:
                The two parts.
            """
            return [text[:at], text[at:]]

        definition = testing.definition(cut)
        self.assertEqual(definition.name, "cut.v1")
        self.assertEqual(definition.description, "Cuts a text.\n\nThe text is not changed.")
        properties = {
            "text": {"type": "string", "description": "The text, which may be long."},
            "at": {"type": "integer", "description": "Where.", "default": 3},
            "end": {"type": ["string", "null"]},
        }
        self.assertEqual(definition.input_schema, {"type": "object", "properties": properties, "required": ["text"]})
        self.assertEqual(definition.output_schema, {"type": "array", "items": {"type": "string"}})
        hints = definition.annotations
        self.assertEqual((definition.title, hints.read_only, hints.destructive), ("Cut", True, False))
        self.assertIsNone(hints.idempotent)
        self.assertEqual(cut("abcdef"), ["abc", "def"])


class Refused(unittest.TestCase):
    def check(self, function: Callable[..., Any], message: str) -> None:
        with self.assertRaises(TypeError) as raised:
            tool(function)
        self.assertEqual(str(raised.exception), message)

    def test_types_without_a_json_form(self) -> None:
        def turn(angle: complex) -> None:
            """Turns."""

        advice = "take text, numbers, lists, `dict[str, …]`, a dataclass, a `TypedDict`, an `Enum` or a `Literal`"
        self.check(turn, f"tool `turn`, `angle`: the type `complex` has no JSON form; {advice}")

        def pair(both: list[Pair]) -> None:
            """Pairs."""

        self.check(pair, "tool `pair`, `both`: the type `Pair` has no JSON form; make it a dataclass")

        def keys(names: dict[int, str]) -> None:
            """Names."""

        self.check(keys, "tool `keys`, `names`: the keys of a JSON object are strings, not `int`; use `dict[str, …]`")

    def test_functions_that_are_no_tools(self) -> None:
        async def wait() -> None:
            """Waits."""

        self.check(
            wait, "tool `wait`: it is `async`, and a tool is not; nothing else runs in a call that it could wait for"
        )

        def silent() -> None: ...

        self.check(silent, "tool `silent`: it has no docstring, which is all that a model knows of it")

        def untyped(a) -> None:  # type: ignore[no-untyped-def]
            """Does something."""

        self.check(untyped, "tool `untyped`: parameter `a` has no type; write `a: str`, for example")

        def many(*names: str) -> None:
            """Does something."""

        self.check(many, "tool `many`: `*names` stands for any number of parameters; a model needs to know each")

        def count() -> Any:
            """Counts."""
            yield 1

        self.check(count, "tool `count`: it is a generator; return a list")

    def test_words_and_defaults_that_do_not_fit(self) -> None:
        def stray(a: int) -> None:
            """Does something.

            Args:
                b: Something.
            """

        self.check(stray, "tool `stray`: the docstring describes `b`, which is not a parameter")

        def none(a: int = None) -> None:  # type: ignore[assignment]
            """Does something."""

        # Python 3.10 reads the annotation as `int | None`.
        if sys.version_info >= (3, 11):
            self.check(none, "tool `none`, `a`: the default is `None` and the type does not allow it; write `… | None`")

        def wrong(a: int = "x") -> None:  # type: ignore[assignment]
            """Does something."""

        self.check(wrong, "tool `wrong`, `a`: the default is not of the type integer")


if __name__ == "__main__":
    unittest.main()
