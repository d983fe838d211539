"""Errors of calls and of the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from cofferdam import (
    CallError,
    Cofferdam,
    CofferdamError,
    RefusedCall,
    StartError,
    ToolError,
    ToolFailure,
)
from conftest import CRASH, TEXT


def test_a_failure(host: Cofferdam) -> None:
    with pytest.raises(ToolFailure) as caught:
        host.call("fail", message="no such note")
    error = caught.value
    assert (str(error), error.suggestion) == ("no such note", "call `ok` instead")
    assert error.text == '{"error":{"message":"no such note","suggestion":"call `ok` instead"}}'
    assert error.record is not None
    assert error.record["outcome"] == "failure"


@pytest.mark.parametrize(
    ("tool", "arguments", "error_type"),
    [
        ("divide_by_zero", {}, "Trap.IntegerDivideByZero"),
        ("panic", {}, "Trap.Unreachable"),
        ("allocate", {}, "MemoryLimit"),
        ("invalid_json", {}, "InvalidResult"),
        ("sleep", {"ms": 5000}, "Timeout"),
    ],
)
def test_errors(host: Cofferdam, tool: str, arguments: dict[str, int], error_type: str) -> None:
    with pytest.raises(ToolError) as caught:
        host.call(tool, arguments, timeout=2)
    error = caught.value
    assert error.error_type == error_type
    assert str(error) == f"the call of `{tool}` ended in the error `{error_type}`"
    assert error.text.startswith('{"error":{"message":"An unexpected error occurred')
    assert (error.detail or "detail") not in f"{error} {error.text}"


def test_an_unknown_tool(host: Cofferdam) -> None:
    with pytest.raises(RefusedCall, match="there is no tool called 'word_cuont'") as caught:
        host.call("word_cuont", text="a")
    assert (caught.value.code, caught.value.nearest) == ("unknown_tool", "word_count")
    assert caught.value.record is None


def test_invalid_arguments(host: Cofferdam) -> None:
    with pytest.raises(RefusedCall) as caught:
        host.call("word_count", {"min_length": -1})
    assert caught.value.code == "invalid_arguments"
    assert {problem["path"] for problem in caught.value.problems} == {"text", "min_length"}
    assert len(caught.value.text.splitlines()) == 2


def test_results_instead_of_errors(host: Cofferdam) -> None:
    for tool, outcome in [
        ("fail", "failure"),
        ("unreachable", "error"),
        ("nothing", "refused"),
        ("ok", "ok"),
    ]:
        result = host.call(tool, check=False)
        assert (result.outcome, result.is_error) == (outcome, outcome != "ok")
        assert result.text
        error = result.error()
        assert error is None or isinstance(error, CallError)


def test_messages_that_are_too_long(host: Cofferdam) -> None:
    text = "x" * (16 * 1024 * 1024)
    with pytest.raises(RefusedCall, match="at most 16777216 bytes") as caught:
        host.call("word_count", text=text)
    assert caught.value.code == "message_too_long"
    result = host.call("word_count", text=text, check=False)
    assert (result.outcome, result.is_error) == ("refused", True)
    with pytest.raises(RefusedCall, match="larger than 1048576 bytes"):
        host.call("word_count", text="x" * (15 * 1024 * 1024))
    assert host.call("word_count", text="x " * 500_000).value["words"] == 500_000


def test_arguments_that_are_not_json(host: Cofferdam) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        host.call("word_count", text=object())
    with pytest.raises(ValueError, match="not JSON compliant"):
        host.call("word_count", text=float("nan"))
    assert host.call("ok").value == "ok"


def test_a_host_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"missing\.wasm: cannot be read") as caught:
        Cofferdam(tmp_path / "missing.wasm").start()
    assert caught.value.exit_code == 4
    with pytest.raises(StartError, match="frobnicate") as caught:
        Cofferdam(TEXT, limits={"frobnicate": 1}).start()
    assert caught.value.exit_code == 2


@pytest.mark.process
def test_flags_that_the_program_does_not_know() -> None:
    with pytest.raises(StartError, match=r"^invalid value 'cobol' for .*found `cobol`$") as caught:
        Cofferdam(TEXT, tools="--nothing", code_language="cobol").start()  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
    with pytest.raises(StartError, match=r"^`tols:x` is not a permission: it starts with"):
        Cofferdam(TEXT, allow="tols:x").start()


@pytest.mark.process
def test_programs_that_are_not_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(StartError, match=r"`executable` names '.*missing', which is not a file"):
        Cofferdam(executable=missing).start()
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(StartError, match=r"cannot start '.*other': Permission denied"):
        Cofferdam(executable=other).start()
    other.chmod(0o755)
    with pytest.raises(StartError, match="the program is not `cofferdam pipe`"):
        Cofferdam(executable=other).start()
    other.write_text('#!/bin/sh\nread hello\necho \'{"type":"ready","protocol":2}\'\n')
    with pytest.raises(StartError, match="expected version 1 of the protocol, found 2"):
        Cofferdam(executable=other).start()
    monkeypatch.setenv("COFFERDAM", str(missing))
    with pytest.raises(StartError, match="the environment variable `COFFERDAM` names"):
        Cofferdam().start()
    monkeypatch.delenv("COFFERDAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartError, match="set `COFFERDAM` to its path"):
        Cofferdam().start()
    (tmp_path / "cofferdam").symlink_to("other")
    with pytest.raises(StartError, match="expected version 1"):
        Cofferdam().start()


def test_a_closed_host() -> None:
    with Cofferdam(CRASH) as host:
        assert host.call("ok").value == "ok"
    host.close()
    host.close()
    for use in (host.start, host.tools, lambda: host.call("ok")):
        with pytest.raises(CofferdamError, match="the host is closed"):
            use()
