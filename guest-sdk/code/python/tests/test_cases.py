"""Runs the programs of `cases.jsonl`, which the end-to-end tests run in a component.

Each line has `name`, `code`, and what is expected: `result`, or `error` (the message of the
failure), and `logs`. A row with `component` runs only there. `catalog` lists the tools as the host
does. `answers` has the outcomes of each tool by its name, one for each call: `{"result": …}` or
`{"error": {…}}`. `calls` are the expected calls with their arguments.
"""

from __future__ import annotations

import builtins
import json
import unittest
import warnings
from pathlib import Path
from typing import Any

import interpreter
from cofferdam import Json, ToolFailure, tool_calls
from cofferdam_code import run as run_module

_CASES = Path(__file__).parent.parent / "cases.jsonl"
_ERRORS = {each.code: each for each in tool_calls._ERRORS.values()}


class Host:
    """Answers calls as a case says."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self._answers = {name: list(each) for name, each in answers.items()}
        self._ended: list[tool_calls.EndedCall] = []
        self.calls: list[str] = []

    def start(self, name: str, arguments_json: str) -> int:
        self.calls.append(f"{name} {json.dumps(json.loads(arguments_json), separators=(',', ':'))}")
        number = len(self.calls)
        answer = self._answers[name].pop(0)
        if "error" in answer:
            given = answer["error"]
            error = _ERRORS[given["code"]](
                given["message"], suggestion=given.get("suggestion"), value=given.get("value")
            )
            self._ended.append(tool_calls.EndedCall(number, [], error))
        else:
            value = answer["result"]
            self._ended.append(tool_calls.EndedCall(number, [] if value is None else [Json(value)]))
        return number

    def wait_any(self) -> list[tool_calls.EndedCall]:
        ended, self._ended = self._ended, []
        return ended


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Runs the program of a case, and returns what it should have."""
    host = Host(case.get("answers", {}))
    before, tool_calls._bindings = tool_calls._bindings, host
    found: dict[str, Any] = {}
    try:
        catalog = json.dumps({"tools": case.get("catalog", [])})
        output = json.loads(interpreter.run_code(case["code"], catalog, "7", 1_700_000_000_000).text)
        found["result"] = output["result"]
    except ToolFailure as failed:
        output = json.loads(failed.value.text)
        found["error"] = failed.message
    finally:
        tool_calls._bindings = before
        # A component runs one program.
        run_module._builtins.__dict__.update(builtins.__dict__)
    if "logs" in output:
        found["logs"] = output["logs"]
    if "calls" in case:
        found["calls"] = host.calls
    return found


class Cases(unittest.TestCase):
    def setUp(self) -> None:
        # The runner of tests turns warnings on, which a component does not.
        warnings.simplefilter("ignore")

    def test_cases(self) -> None:
        names = set()
        for line in _CASES.read_text().splitlines():
            case = json.loads(line)
            if case.get("component"):
                continue
            with self.subTest(case["name"]):
                self.assertNotIn(case["name"], names)
                names.add(case["name"])
                expected = {key: case[key] for key in ("result", "error", "logs", "calls") if key in case}
                self.assertEqual(run(case), expected)


if __name__ == "__main__":
    unittest.main()
