"""Tests without a host. `cofferdam test` runs the cases of cases.jsonl in the sandbox."""

import pytest
from app import greet
from cofferdam import ToolFailure, testing


def test_somebody_is_greeted() -> None:
    assert testing.call(greet, {"name": "Ada"}) == "Hello, Ada!"


def test_too_often() -> None:
    with pytest.raises(ToolFailure, match="too often"):
        testing.call(greet, {"name": "Ada", "times": 1000})
