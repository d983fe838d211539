"""Calls from many threads, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cofferdam import CallCancelled, Cofferdam, HostExited, ToolFailure
from conftest import CRASH


def test_many_threads_get_their_own_results(host: Cofferdam) -> None:
    def count(number: int) -> None:
        for index in range(25):
            text = "a " * (number + index)
            assert host.call("word_count", text=text).value["words"] == number + index
            with pytest.raises(ToolFailure, match=f"failure {number}-{index}"):
                host.call("fail", message=f"failure {number}-{index}")

    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(count, number) for number in range(16)]:
            future.result()


def test_long_messages_of_several_threads_are_not_mixed(host: Cofferdam) -> None:
    with ThreadPoolExecutor(8) as pool:
        texts = [f"{number} " * 100_000 for number in range(8)]
        results = pool.map(lambda text: host.call("word_count", text=text), texts)
        assert [result.value["words"] for result in results] == [100_000] * 8


def test_a_slow_call_delays_no_other(host: Cofferdam) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(host.call, "sleep", {"ms": 600})
        started = time.monotonic()
        host.call("ok")
        assert time.monotonic() - started < 0.5
        assert slow.result().value == "ok"


def test_ctrl_c_cancels_the_call(host: Cofferdam) -> None:
    main = threading.main_thread().ident
    assert main is not None
    # A shell starts background jobs with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        host.call("sleep", ms=20_000)
    assert time.monotonic() - started < 5
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert host.call("ok").value == "ok"


@pytest.mark.parametrize(
    ("words_max", "pause", "count"), [(40_000, 0.008, 10), (3, 0.0007, 300)], ids=["long", "short"]
)
def test_interrupts_at_any_time_leave_the_connection_intact(
    host: Cofferdam, words_max: int, pause: float, count: int
) -> None:
    main = threading.main_thread().ident
    assert main is not None
    is_armed = False

    def handle(number: int, frame: object) -> None:
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise KeyboardInterrupt

    def interrupt(thread: int) -> None:
        while not done.wait(pause):
            signal.pthread_kill(thread, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    done = threading.Event()
    interrupter = threading.Thread(target=interrupt, args=(main,))
    interrupter.start()
    ended = interrupted = 0
    try:
        while min(ended, interrupted) < count and ended + interrupted < 200 * count:
            words = 1 + (ended + interrupted) * 997 % words_max
            try:
                is_armed = True
                result = host.call("word_count", text="a " * words)
                is_armed = False
            except KeyboardInterrupt:
                interrupted += 1
            else:
                assert result.value["words"] == words
                ended += 1
    finally:
        is_armed = False
        done.set()
        interrupter.join()
        signal.signal(signal.SIGUSR1, before)
    assert interrupted >= count
    assert host.call("word_count", text="a b").value["words"] == 2


def test_closing_ends_the_calls_in_progress() -> None:
    host = Cofferdam(CRASH)
    host.start()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(host.call, "sleep", {"ms": 20_000}) for _ in range(4)]
        time.sleep(0.2)
        started = time.monotonic()
        host.close()
        for call in calls:
            with pytest.raises((CallCancelled, HostExited)):
                call.result()
    assert time.monotonic() - started < 5


def test_threads_start_a_host_once() -> None:
    with Cofferdam(CRASH) as other:
        host = Cofferdam(CRASH)
        with ThreadPoolExecutor(8) as pool:
            results = [pool.submit(host.call, "ok") for _ in range(8)]
            assert {result.result().value for result in results} == {"ok"}
        host.close()
        assert other.call("ok").value == "ok"
