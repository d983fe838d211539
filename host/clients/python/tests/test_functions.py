"""Functions of the program as tools."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import threading
from typing import Any, TypedDict

import pytest

from cofferdam import Cofferdam, CofferdamError, StartError, ToolError, ToolFailure
from conftest import TEXT


class Note(TypedDict):
    title: str
    words: int


def lookup(title: str, limit: int = 10) -> Note:
    """Looks a note up.

    Args:
        title: title of the note.
        limit: maximum number of words.
    """
    if title == "missing":
        raise ToolFailure("there is no such note", "list the notes", {"near": ["a"]})
    if title == "broken":
        raise KeyError("secret detail")
    if title == "wrong":
        return {"title": title}  # type: ignore[typeddict-item]
    return {"title": title, "words": limit}


async def slow_lookup(title: str) -> str:
    await asyncio.sleep(0.1)
    return title.upper()


def thread_name() -> str:
    return threading.current_thread().name


def test_a_function_is_declared_and_called() -> None:
    with Cofferdam(functions=[lookup]) as host:
        (tool,) = host.tools()
        assert (tool.name, tool.description) == ("lookup", "Looks a note up.")
        assert tool.input_schema["required"] == ["title"]
        assert tool.input_schema["properties"]["limit"] == {
            "type": "integer",
            "default": 10,
            "description": "maximum number of words.",
        }
        assert tool.output_schema is not None
        assert host.call("lookup", title="a").value == {"title": "a", "words": 10}
        # The host decodes the arguments by the schema.
        assert host.call("lookup", title="a", limit="3").value["words"] == 3


def test_decorators() -> None:
    host = Cofferdam()

    @host.tool
    def double(number: int) -> int:
        return 2 * number

    @host.tool(name="add.all", description="Adds.", annotations={"read_only": True})
    async def add(numbers: list[int]) -> int:
        return sum(numbers)

    assert double(4) == 8
    with host:
        assert host.call("double", number=4).value == 8
        assert host.call("add.all", numbers=[1, 2, 3]).value == 6
        tools = {tool.name: tool for tool in host.tools()}
        assert tools["add.all"].annotations["read_only"] is True
        with pytest.raises(CofferdamError, match="has started without the function `lookup`"):
            host.tool(lookup)


def test_names_are_unique() -> None:
    with pytest.raises(CofferdamError, match="two functions called `lookup`"):
        Cofferdam(functions=[lookup, lookup])
    with pytest.raises(StartError, match="word_count"), Cofferdam(TEXT) as host:
        raise StartError(str([tool.name for tool in host.tools()]))


def test_failures_and_exceptions(caplog: pytest.LogCaptureFixture) -> None:
    with Cofferdam(functions=[lookup]) as host:
        with pytest.raises(ToolFailure) as failure:
            host.call("lookup", title="missing")
        assert str(failure.value) == "there is no such note"
        assert failure.value.suggestion == "list the notes"
        assert failure.value.value == {"near": ["a"]}
        with pytest.raises(ToolError) as error:
            host.call("lookup", title="broken")
        assert error.value.error_type == "KeyError"
        assert "secret detail" not in error.value.text
        assert error.value.detail is not None
        assert "secret detail" in error.value.detail
        assert "the function `lookup` raised an exception" in caplog.messages
        with pytest.raises(ToolError) as wrong:
            host.call("lookup", title="wrong")
        assert wrong.value.error_type == "InvalidResult"


def test_results_that_are_not_json(caplog: pytest.LogCaptureFixture) -> None:
    def thing() -> Any:
        return object()

    def long() -> str:
        return "x" * 17_000_000

    with Cofferdam(functions=[thing, long]) as host:
        for name, error_type in [("thing", "TypeError"), ("long", "MessageTooLong")]:
            with pytest.raises(ToolError) as error:
                host.call(name)
            assert error.value.error_type == error_type


def test_functions_run_where_the_call_was_made() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def read() -> str:
        return f"{variable.get()} {threading.current_thread() is threading.main_thread()}"

    with Cofferdam(functions=[thread_name, read, slow_lookup]) as host:
        assert host.call("thread_name").value == "MainThread"

        async def main() -> None:
            variable.set("set")
            assert (await host.acall("thread_name")).value != "MainThread"
            assert (await host.acall("read")).value == "set True"
            # A blocking call on the thread of a loop.
            assert host.call("slow_lookup", title="a").value == "A"

        asyncio.run(main())
        assert host.call("slow_lookup", title="b").value == "B"


def test_functions_that_call_tools() -> None:
    host = Cofferdam(TEXT)

    @host.tool
    def longest(texts: list[str]) -> int:
        counts: list[int] = [host.call("word_count", text=text).value["words"] for text in texts]
        return max(counts)

    with host:
        assert host.call("longest", texts=["a", "b c d", "e f"]).value == 3


def test_programs_of_a_model_call_functions() -> None:
    with Cofferdam(TEXT, code="only", functions=[lookup, slow_lookup]) as host:
        assert [tool.name for tool in host.tools()] == ["run_code"]
        code = """
            const notes = await Promise.all(["a", "b"].map(title => tools.slow_lookup({title})));
            const {words} = await tools.word_count({text: notes.join(" ")});
            let failure = null;
            try { await tools.lookup({title: "missing"}) } catch (error) { failure = error.message }
            return {notes, words, failure};
        """
        expected = {"notes": ["A", "B"], "words": 2, "failure": "there is no such note"}
        assert host.call("run_code", code=code).value["result"] == expected

        async def main() -> None:
            assert (await host.acall("run_code", code=code)).value["result"] == expected

        asyncio.run(main())


def test_a_function_that_awaits_something_canceled_fails() -> None:
    async def wait_for_canceled() -> None:
        canceled = asyncio.ensure_future(asyncio.sleep(20))
        canceled.cancel()
        await canceled

    with Cofferdam(functions=[wait_for_canceled]) as host:
        with pytest.raises(ToolError, match="CancelledError"):
            host.call("wait_for_canceled")
        assert [tool.name for tool in host.tools()] == ["wait_for_canceled"]


def test_a_canceled_call_cancels_its_function() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            ended.append("canceled")
            raise

    async def main() -> None:
        async with Cofferdam(functions=[wait]) as host:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(host.acall("wait"), 0.2)
            await asyncio.sleep(0.1)
            assert ended == ["canceled"]

    asyncio.run(main())


def test_a_function_that_interrupts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with Cofferdam(functions=[interrupt, lookup]) as host:
        with pytest.raises(KeyboardInterrupt):
            host.call("interrupt")
        assert host.call("lookup", title="a").value["title"] == "a"


def unsendable(kind: str) -> None:
    if kind == "text":
        raise ValueError("no file \udcff")
    if kind == "value":
        raise ToolFailure("not now", value={"at": object()})
    raise Unprintable


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("kind", ["text", "value", "print"])
def test_an_exception_that_cannot_be_sent_ends_the_call(kind: str) -> None:
    with Cofferdam(functions=[unsendable], timeout=5) as host:
        with pytest.raises(ToolError) as caught:
            host.call("unsendable", kind=kind)
        assert "cannot be sent" in str(caught.value.detail)

        async def call() -> None:
            await host.acall("unsendable", kind=kind)

        with pytest.raises(ToolError, match="unsendable"):
            asyncio.run(call())


def test_a_value_that_the_host_cannot_read_ends_only_its_call() -> None:
    def factorial(n: int) -> int:
        return math.factorial(n)

    def fails() -> None:
        raise ToolFailure(5, 6)  # type: ignore[arg-type]

    async def awaits_cancelled() -> None:
        future = asyncio.ensure_future(asyncio.sleep(10))
        future.cancel()
        await future

    with Cofferdam(TEXT, functions=[factorial, fails]) as host:
        with pytest.raises(ToolError):
            host.call("factorial", n=171)
        with pytest.raises(ToolFailure, match="5"):
            host.call("fails")
        assert host.call("word_count", text="a b").value["words"] == 2

    async def run() -> None:
        async with Cofferdam(functions=[awaits_cancelled]) as host:
            with pytest.raises(ToolError):
                await asyncio.wait_for(host.acall("awaits_cancelled"), 20)

    asyncio.run(run())
