"""Schemas of functions, and flags of the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest

from cofferdam import Cofferdam
from cofferdam._schema import description, input_schema, output_schema, type_schema


class Place(TypedDict, total=False):
    name: str
    height: float | None


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (Any, {}),
        (list, {"type": "array", "items": {}}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Annotated[int, "A number."], {"type": "integer", "description": "A number."}),
        (
            Place,
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                },
            },
        ),
    ],
)
def test_types(hint: Any, schema: dict[str, Any]) -> None:
    assert type_schema(hint, "it") == schema


def test_parameters() -> None:
    def find(name: str, *, near: Place | None = None, limit: int = 3) -> Place:
        """Finds a place.

        More about it.

        Args:
            name: name of the place,
                or a part of it.
            limit (int): maximum number.

        Returns:
            The place.
        """
        return {}

    schema = input_schema(find)
    assert schema["required"] == ["name"]
    assert schema["properties"]["name"]["description"] == "name of the place, or a part of it."
    assert schema["properties"]["limit"]["description"] == "maximum number."
    assert schema["properties"]["limit"]["default"] == 3
    assert "default" not in schema["properties"]["near"]
    assert description(find) == "Finds a place.\n\nMore about it."
    assert output_schema(find) == type_schema(Place, "it")


def test_parameters_of_sphinx() -> None:
    def find(name: str) -> str:
        """Finds a place.

        :param name: name of the place.
        :returns: the place.
        """
        return name

    assert input_schema(find)["properties"]["name"]["description"] == "name of the place."
    assert description(find) == "Finds a place."


def test_functions_without_a_schema() -> None:
    def by_position(name: str, /) -> None: ...

    def any_number(*names: str) -> None: ...

    def any_name(**names: str) -> None: ...

    def path(path: Path) -> None: ...

    cases: list[tuple[Callable[..., Any], str]] = [
        (by_position, "parameter `name` of `by_position` cannot be named"),
        (any_number, "parameter `names` of `any_number` cannot be named"),
        (any_name, r"`\*\*names` of `any_name` has no schema: pass `input_schema`"),
        (path, "Path.* of parameter `path` has no schema: pass `input_schema`"),
    ]
    for function, message in cases:
        with pytest.raises(TypeError, match=message):
            Cofferdam(functions=[function])
    host = Cofferdam()
    host.tool(input_schema={"type": "object"})(any_name)
    with pytest.raises(ValueError, match="expected a name of 1 to 64"):
        host.tool(name="a b")(path)


def test_flags() -> None:
    host = Cofferdam(
        ["a.wasm", Path("b.wasm")],
        mounts={"data": "./notes:ro"},
        config="c.toml",
        files={"work": "memory"},
        allow_http="GET https://example.com",
        allow_env={"A": "1"},
        secrets=["key"],
        allow=["random"],
        limits={"cpu_ms_max": 5},
        timeout=0.25,
        memory=9,
        tools=["x", "y"],
        toolsets="z",
        code=True,
        code_language="python",
        record=True,
        cache_dir=False,
    )
    expected = """
        --plugin=a.wasm --plugin=b.wasm --mount=data=./notes:ro --config=c.toml
        --files=work=memory --allow-http=GET https://example.com --allow-env=A=1 --secret=key
        --allow=random --limit=cpu-ms-max=5 --timeout=250ms --memory=9 --tools=x,y --toolset=z
        --code=both --code-language=python --record --no-cache>
    """
    assert repr(host).split()[1:] == expected.split()
    with pytest.raises(
        ValueError, match=r"expected a timeout above 0 and below \d+ seconds, found 0"
    ):
        Cofferdam(timeout=0)
