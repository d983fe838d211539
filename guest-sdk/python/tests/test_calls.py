"""Tests calls of tools with JSON."""

import unittest
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Literal, TypedDict

from cofferdam import Blob, Json, Link, Resource, Text, ToolFailure, _content, _json, testing, tool


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Box:
    size: Size
    labels: tuple[str, ...] = ()
    inner: "Box | None" = None


class Note(TypedDict):
    text: str
    author: str | None


@tool
def pack(box: Box, notes: list[Note], when: date | None, ratio: float = 1, data: bytes = b"") -> dict[str, Any]:
    """Packs a box."""
    return {"box": box, "notes": notes, "when": when, "ratio": ratio, "data": data}


@tool
def grow(items: list[int] = [1]) -> list[int]:  # noqa: B006
    """Grows its default."""
    items.append(2)
    return items


@tool
def choose(kind: Literal["a", "b"]) -> Any:
    """Returns contents."""
    if kind == "b":
        return ["seen", Blob("image/png", b"abc"), {"n": 1}]
    raise ToolFailure("no", suggestion="pass b", transient=False, value={"code": 7})


class Arguments(unittest.TestCase):
    def test_values_become_what_the_function_wants(self) -> None:
        inner = {"size": "small"}
        box = {"size": "large", "labels": ["a"], "inner": inner, "undeclared": 1}
        given = {"box": box, "notes": [{"text": "x"}], "when": "2026-11-22", "ratio": 2, "data": "aGk="}
        made = testing.call(pack, given)
        self.assertEqual(made["box"]["inner"], {"size": "small", "labels": [], "inner": None})
        self.assertEqual(made["notes"], [{"text": "x", "author": None}])
        self.assertEqual((made["when"], made["ratio"], made["data"]), ("2026-11-22", 2.0, "aGk="))

    def test_what_is_left_out_or_null(self) -> None:
        made = testing.call(pack, {"box": {"size": "small", "labels": None}, "notes": [], "ratio": None})
        self.assertEqual((made["when"], made["ratio"], made["data"]), (None, 1.0, ""))

    def test_defaults_are_not_shared(self) -> None:
        self.assertEqual(testing.call(grow), [1, 2])
        self.assertEqual(testing.call(grow), [1, 2])

    def check(self, arguments: dict[str, Any], message: str) -> None:
        with self.assertRaises(ToolFailure) as raised:
            testing.call(pack, arguments)
        self.assertEqual(raised.exception.message, message)
        self.assertIs(raised.exception.transient, False)

    def test_what_does_not_fit(self) -> None:
        self.check({"notes": []}, "Required argument 'box' was not supplied to 'pack'.")
        self.check({"box": None, "notes": []}, "Required argument 'box' was not supplied to 'pack'.")
        box = {"size": "small"}
        self.check({"box": {}, "notes": []}, "An argument of 'pack' cannot be used: box.size is missing.")
        wrong = {"size": "tiny"}
        self.check(
            {"box": wrong, "notes": []}, "An argument of 'pack' cannot be used: box.size is none of 'small', 'large'."
        )
        self.check({"box": box, "notes": [1]}, "An argument of 'pack' cannot be used: notes[0] is not an object.")
        bad = {"box": box, "notes": [], "ratio": True}
        self.check(bad, "An argument of 'pack' cannot be used: ratio is not of the type number.")


class Results(unittest.TestCase):
    def test_contents(self) -> None:
        items = testing.contents(choose, {"kind": "b"})
        self.assertEqual(items, [Text("seen"), Blob("image/png", b"abc"), Json({"n": 1})])
        seen = testing.call(choose, {"kind": "b"})
        self.assertEqual(seen, ["seen", {"media_type": "image/png", "bytes": 3}, {"n": 1}])

    def test_what_is_returned(self) -> None:
        self.assertEqual(_content.of_returned(None), [])
        self.assertEqual(_content.of_returned(""), [Text("")])
        self.assertEqual(_content.of_returned([]), [Json([])])
        self.assertEqual(_content.of_returned(["a"]), [Json(["a"])])
        self.assertEqual(_content.of_returned(Size.SMALL), [Json(Size.SMALL)])
        link, resource = Link("a:b", "b"), Resource("m:1", "x")
        self.assertEqual(_content.of_returned((link, resource)), [link, resource])
        with self.assertRaisesRegex(TypeError, "without a media type"):
            _content.of_returned(b"x")

    def test_failures(self) -> None:
        with self.assertRaises(ToolFailure) as raised:
            testing.call(choose, {"kind": "a"})
        failure = raised.exception
        self.assertEqual(str(failure), "no; pass b")
        self.assertEqual((failure.message, failure.suggestion), ("no", "pass b"))
        self.assertEqual((failure.transient, failure.value), (False, {"code": 7}))

    def test_json(self) -> None:
        self.assertEqual(_json.dumps({3, 1}), "[1, 3]")
        self.assertEqual(
            _json.dumps({"a": Size.LARGE, "b": date(2026, 1, 2), "c": b"hi"}),
            '{"a": "large", "b": "2026-01-02", "c": "aGk="}',
        )
        self.assertEqual(_json.dumps("ñ\ud800"), '"ñ\ufffd"')
        with self.assertRaisesRegex(TypeError, "the type `object` has no JSON form"):
            _json.dumps(object())
        with self.assertRaises(ValueError):
            _json.dumps(float("nan"))

    def test_what_is_no_tool(self) -> None:
        with self.assertRaisesRegex(TypeError, "`len` is not a tool; decorate it with `@tool`"):
            testing.call(len)


if __name__ == "__main__":
    unittest.main()
