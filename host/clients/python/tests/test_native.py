"""Hosts in this process: forks, the end of the program, and what is missing."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cofferdam import Cofferdam, CofferdamError, StartError, ToolFailure
from conftest import CRASH, NATIVE, SOURCE, TEXT

pytestmark = pytest.mark.native


def run(
    program: str, options: Sequence[str] = ("-X", "faulthandler")
) -> subprocess.CompletedProcess[str]:
    """Runs a program that has started a host."""
    start = "from cofferdam import Cofferdam, CofferdamError, StartError\n"
    start += f"host = Cofferdam({str(CRASH)!r}, in_process=True)\nhost.start()\n"
    return subprocess.run(
        [sys.executable, *options, "-c", start + program],
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{NATIVE}"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_the_host_is_in_this_process(host: Cofferdam) -> None:
    host.call("ok")
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    assert not any(b"pipe" in command for command in commands)


def test_calls_release_the_lock_of_the_interpreter(host: Cofferdam) -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    host.call("sleep", ms=300)
    done.set()
    thread.join()
    assert counted > 20


def test_calls_of_functions_of_the_program_nest() -> None:
    def outer(depth: int) -> int:
        return depth if depth == 0 else int(host.call("outer", depth=depth - 1).value) + 1

    with Cofferdam(functions=[outer]) as host:
        assert host.call("outer", depth=5).value == 5


def test_a_timeout_ends_a_call_whose_function_blocks() -> None:
    def block() -> str:
        time.sleep(0.5)
        return "late"

    with Cofferdam(functions=[block]) as host:
        result = host.call("block", timeout=0.1, check=False)
        assert result.outcome == "error"
        assert result.record is not None
        assert result.record["error_type"] == "Timeout"


def test_the_same_values_as_over_a_pipe() -> None:
    values: list[object] = [
        None,
        True,
        -(2**63),
        2**64 - 1,
        1.5,
        1e300,
        "ä\x00🦀",
        [[], {}],
        {"a": [1, {"b": ()}]},
    ]

    def same(value: object) -> object:
        return value

    schema = {"type": "object", "properties": {"value": {}}, "required": ["value"]}
    hosts = [Cofferdam(in_process=in_process) for in_process in (True, False)]
    for host in hosts:
        host.tool(name="same", input_schema=schema)(same)
    with hosts[0], hosts[1]:
        for value in values:
            native, pipe = (host.call("same", {"value": value}).value for host in hosts)
            assert (native, type(native)) == (pipe, type(pipe))


def test_a_forked_process_cannot_use_the_host() -> None:
    program = """
import os
child = os.fork()
if child == 0:
    for use in (lambda: host.call("ok"), Cofferdam(in_process=True).start):
        try:
            use()
        except CofferdamError as error:
            print(error, flush=True)
    host.close()
    with Cofferdam(%r) as other:
        print(other.call("ok").value, flush=True)
    raise SystemExit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), host.call("ok").value, flush=True)
"""
    ended = run(program % str(CRASH))
    first, second, *rest = ended.stdout.splitlines()
    assert "this process was forked from the one that started the host" in first
    assert "forked from one that runs a host in process" in second
    assert rest == ["ok", "7 ok"]
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "program",
    [
        "",
        "host.close()",
        "del host",
        "import sys; sys.exit(0)",
        "import _thread, time\n"
        "_thread.start_new_thread(lambda: host.call('spin', check=False), ())\n"
        "time.sleep(0.1)",
        "import asyncio; asyncio.run(host.acall('ok'))",
    ],
)
def test_the_program_ends(program: str) -> None:
    started = time.monotonic()
    ended = run(program)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert time.monotonic() - started < 10


def test_ctrl_c_ends_a_program_that_waits() -> None:
    program = "import os, signal, threading\n"
    # A shell starts background jobs with the signal ignored.
    program += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
    program += "host.call('sleep', ms=15_000)"
    started = time.monotonic()
    ended = run(program)
    assert time.monotonic() - started < 10
    assert "KeyboardInterrupt" in ended.stderr
    assert ended.returncode in (1, 130, -signal.SIGINT)


@pytest.mark.parametrize("name", ["enable", "disable"])
def test_later_signal_handlers_refuse_calls(name: str) -> None:
    program = f"""
import faulthandler
try:
    faulthandler.{name}()
    print(host.call("divide_by_zero", check=False).outcome)
except CofferdamError as error:
    print(error)
"""
    options = ["-X", "faulthandler"] if name == "disable" else []
    ended = run(program, options)
    assert ended.stdout.startswith("`faulthandler` was enabled or disabled after the first host")
    assert ended.returncode == 0


def test_traps_end_calls_alone(host: Cofferdam) -> None:
    assert faulthandler.is_enabled()
    for tool in ("divide_by_zero", "out_of_bounds", "stack_overflow"):
        result = host.call(tool, check=False)
        assert result.record is not None
        assert result.record["error_type"].startswith("Trap.") or tool == "stack_overflow"


def test_a_host_that_is_forgotten_ends() -> None:
    before = threading.active_count()
    host = Cofferdam(CRASH)
    host.start()
    assert threading.active_count() == before + 1
    del host
    gc.collect()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_plugins_are_compiled_by_the_program(tmp_path: Path) -> None:
    program = tmp_path / "cofferdam"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/arguments\nexit 1\n')
    program.chmod(0o755)
    with pytest.raises(StartError):
        Cofferdam(TEXT, executable=program, cache_dir=False).start()
    assert "cofferdam-compile-child" in (tmp_path / "arguments").read_text()


def test_a_missing_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cofferdam_native", None)
    with pytest.raises(StartError, match=r"needs the module `cofferdam_native`.*\[native\]"):
        Cofferdam(TEXT).start()


def test_a_module_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import cofferdam_native

    monkeypatch.setattr(cofferdam_native, "INTERFACE", 99)
    with pytest.raises(StartError, match=r"expected version 1 of the module .*, found 99"):
        Cofferdam(TEXT).start()


def test_errors_of_flags() -> None:
    with pytest.raises(StartError, match="--toolset names a toolset of a configuration"):
        Cofferdam(TEXT, toolsets="a").start()
    with pytest.raises(StartError, match="memory limit of 1 to 4096 MiB") as caught:
        Cofferdam(TEXT, memory=0).start()
    assert caught.value.exit_code == 2


def test_a_failure_keeps_its_members(host: Cofferdam) -> None:
    with pytest.raises(ToolFailure) as caught:
        host.call("fail")
    assert caught.value.suggestion == "call `ok` instead"
    assert caught.value.record is not None


def test_a_host_that_was_closed() -> None:
    with Cofferdam(CRASH) as host:
        pass
    with pytest.raises(CofferdamError, match="the host is closed"):
        host.call("ok")
