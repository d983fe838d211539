"""Calls from asyncio."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from cofferdam import (
    CallCancelled,
    Cofferdam,
    HostExited,
    Progress,
    RefusedCall,
    ToolError,
    ToolFailure,
)
from conftest import CRASH, TEXT


def test_calls_run_at_the_same_time(host: Cofferdam) -> None:
    async def main() -> None:
        started = time.monotonic()
        calls = [host.acall("sleep", ms=400) for _ in range(8)]
        results = await asyncio.gather(*calls, host.acall("word_count", {"text": "a b"}))
        assert [result.value for result in results[:8]] == ["ok"] * 8
        assert results[8].value["words"] == 2
        assert time.monotonic() - started < 2.5

    asyncio.run(main())


def test_more_calls_than_a_host_accepts_wait_for_their_turn(host: Cofferdam) -> None:
    async def main() -> None:
        calls = [asyncio.create_task(host.acall("ok")) for _ in range(1100)]
        await asyncio.sleep(0)
        calls[-1].cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(results.pop(), asyncio.CancelledError)
        assert {getattr(result, "value", result) for result in results} == {"ok"}

    asyncio.run(main())


def test_any_loop_can_use_a_host(host: Cofferdam) -> None:
    def run() -> None:
        for _ in range(3):
            assert asyncio.run(host.acall("ok")).value == "ok"

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_errors(host: Cofferdam) -> None:
    async def main() -> None:
        with pytest.raises(ToolFailure, match="no"):
            await host.acall("fail", message="no")
        with pytest.raises(ToolError):
            await host.acall("panic")
        with pytest.raises(RefusedCall):
            await host.acall("nothing")
        with pytest.raises(RefusedCall, match="16777216"):
            await host.acall("word_count", text="x" * 17_000_000)
        assert (await host.acall("fail", check=False)).outcome == "failure"
        assert (await host.acall("word_count", text="a " * 500_000)).value["words"] == 500_000

    asyncio.run(main())


def test_a_canceled_task_cancels_its_call() -> None:
    async def main() -> None:
        async with Cofferdam(CRASH) as host:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(host.acall("sleep", ms=20_000), 0.2)
            big = asyncio.ensure_future(host.acall("print", {"bytes": 1, "x": "y" * 900_000}))
            await asyncio.sleep(0)
            big.cancel()
            with pytest.raises(asyncio.CancelledError):
                await big
            assert (await host.acall("ok")).value == "ok"
            started = time.monotonic()
        assert time.monotonic() - started < 5

    asyncio.run(main())


def test_the_loop_goes_on_while_the_host_starts_and_calls() -> None:
    async def main() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        host = Cofferdam([TEXT, CRASH])
        await host.acall("sleep", ms=300)
        ticking.cancel()
        host.close()
        assert ticks > 10

    asyncio.run(main())


def test_progress_is_reported_on_the_loop(host: Cofferdam) -> None:
    async def main() -> None:
        seen: list[tuple[float, asyncio.AbstractEventLoop]] = []

        def report(progress: Progress) -> None:
            seen.append((progress.done, asyncio.get_running_loop()))

        await host.acall("test_tool_with_progress", on_progress=report)
        loop = asyncio.get_running_loop()
        assert seen == [(0, loop), (50, loop), (100, loop)]

        def fail(progress: Progress) -> None:
            raise LookupError("no")

        with pytest.raises(LookupError):
            await host.acall("test_tool_with_progress", on_progress=fail)

    asyncio.run(main())


def test_closing_ends_the_calls_in_progress() -> None:
    async def main() -> None:
        async with Cofferdam(CRASH) as host:
            call = asyncio.ensure_future(host.acall("sleep", ms=20_000))
            await asyncio.sleep(0.2)
        with pytest.raises((CallCancelled, HostExited)):
            await call

    asyncio.run(main())


def test_a_loop_that_ends_during_a_call_leaves_the_host_usable(host: Cofferdam) -> None:
    async def main() -> None:
        asyncio.ensure_future(host.acall("sleep", ms=200))  # noqa: RUF006 - dropped on purpose
        await asyncio.sleep(0.05)

    asyncio.run(main())
    time.sleep(0.3)
    assert host.call("ok").value == "ok"
