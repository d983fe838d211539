"""The process of the host: crashes, forks, and its end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cofferdam import Cofferdam, HostExited, StartError
from cofferdam._process import ProcessConnection
from conftest import CRASH, SOURCE, TEXT

pytestmark = pytest.mark.process


def process_of(host: Cofferdam) -> int:
    assert isinstance(host._connection, ProcessConnection)
    return host._connection._process.pid


def is_running(process: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


def run(program: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Runs a program that prints the process of its host."""
    start = "from cofferdam import Cofferdam\n"
    start += f"host = Cofferdam({str(CRASH)!r})\nhost.start()\n"
    start += "print(host._connection._process.pid, flush=True)\n"
    ended = subprocess.run(
        [sys.executable, "-c", start + program],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return ended, int(ended.stdout.split()[0])


def test_a_killed_host_ends_every_call() -> None:
    with Cofferdam(CRASH) as host, ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(host.call, "sleep", {"ms": 20_000}) for _ in range(4)]
        time.sleep(0.2)
        os.kill(process_of(host), signal.SIGKILL)
        for call in calls:
            with pytest.raises(HostExited, match=r"ended during the call \(signal 9\)") as caught:
                call.result(timeout=5)
            assert caught.value.exit_code == -9
        with pytest.raises(HostExited):
            host.call("ok")


def test_a_host_ends_with_the_statement() -> None:
    with Cofferdam(CRASH) as host:
        process = process_of(host)
    assert not is_running(process)


def test_a_host_that_is_forgotten_ends() -> None:
    host = Cofferdam(CRASH)
    host.start()
    process = process_of(host)
    del host
    gc.collect()
    assert not is_running(process)


@pytest.mark.parametrize(
    "program",
    [
        "",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "raise SystemExit(3)",
        "import _thread, time; _thread.start_new_thread(host.call, ('spin',)); time.sleep(0.1)",
    ],
)
def test_no_process_is_left_behind(program: str) -> None:
    _, process = run(program)
    assert not is_running(process)


def test_a_forked_process_cannot_use_the_host() -> None:
    program = """
import os
from cofferdam import CofferdamError
child = os.fork()
if child == 0:
    try:
        host.call("ok")
    except CofferdamError as error:
        print(error, flush=True)
    host.close()
    raise SystemExit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), host.call("ok").value, flush=True)
import signal, time
child = os.fork()
if child == 0:
    time.sleep(20)
started = time.monotonic()
host.close()
print("closed in time" if time.monotonic() - started < 4 else "too late", flush=True)
os.kill(child, signal.SIGKILL)
"""
    ended, _ = run(program)
    assert "this process was forked from the one that started the host" in ended.stdout
    assert "7 ok\nclosed in time\n" in ended.stdout


def test_notes_of_the_host_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cofferdam")
    with Cofferdam(TEXT, cache_dir=tmp_path / "cache"):
        pass
    assert any("compil" in message for message in caplog.messages)


def test_a_message_that_the_host_does_not_know_ends_it() -> None:
    with Cofferdam(CRASH) as host:
        assert host._connection is not None
        host._connection.write(b"hello\n")
        with pytest.raises(HostExited, match="expected"):
            host.call("sleep", ms=5000)


def test_an_interrupted_start_leaves_no_process(tmp_path: Path) -> None:
    program = tmp_path / "slow"
    program.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 20\n")
    program.chmod(0o755)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(Cofferdam(executable=program).start)
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        process = int((tmp_path / "pid").read_text())
        os.kill(process, signal.SIGTERM)
        with pytest.raises(StartError, match="signal 15"):
            starting.result()
    assert not is_running(process)
