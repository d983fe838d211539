"""Tools of the OpenAI Agents SDK, with its scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner, RunResult, ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tracing import Span, Trace, TracingProcessor, set_trace_processors

from cofferdam import Cofferdam
from cofferdam.adapters.openai_agents import tools


class Spans(TracingProcessor):
    """Keeps the errors of spans of functions."""

    def __init__(self) -> None:
        self.errors: list[Any] = []

    def on_trace_start(self, trace: Trace) -> None: ...

    def on_trace_end(self, trace: Trace) -> None: ...

    def on_span_start(self, span: Span[Any]) -> None: ...

    def on_span_end(self, span: Span[Any]) -> None:
        if span.span_data.type == "function":
            self.errors.append(span.error)

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


async def run(host: Cofferdam, tool: str, arguments: dict[str, Any]) -> RunResult:
    model = ScriptedModel(
        [[function_call(tool, arguments, call_id="1")], [assistant_message("done")]]
    )
    agent = Agent[Any](name="test", model=model, tools=[*await tools(host)])
    return await Runner.run(agent, "go")


def output(host: Cofferdam, tool: str, arguments: dict[str, Any]) -> Any:
    """Returns what the model gets for a call."""
    (item,) = [
        item
        for item in asyncio.run(run(host, tool, arguments)).new_items
        if isinstance(item, ToolCallOutputItem)
    ]
    raw: Any = item.raw_item
    return raw["output"]


def test_calls_and_errors(host: Cofferdam) -> None:
    spans = Spans()
    set_trace_processors([spans])
    counted = output(host, "word_count", {"text": "to be"})
    assert counted == '{"words":2,"lines":1,"characters":5,"longest":"to"}'
    assert spans.errors == [None]
    failed = output(host, "fail", {"message": "no"})
    assert failed == host.call("fail", message="no", check=False).text
    assert spans.errors[1] == {"message": "failure", "data": {"error": "no"}}
    assert "Required argument 'text'" in output(host, "word_count", {})
    assert "Trap.Unreachable" in output(host, "panic", {})
    assert len([error for error in spans.errors if error is not None]) == 3


def test_schemas_reach_the_model(host: Cofferdam) -> None:
    async def main() -> None:
        model = ScriptedModel([[assistant_message("done")]])
        await Runner.run(Agent[Any](name="test", model=model, tools=[*await tools(host)]), "go")
        assert model.last_call is not None
        shown = {tool.name: tool for tool in model.last_call.tools}
        for tool in host.tools():
            function = shown[tool.name]
            assert isinstance(function, FunctionTool)
            assert function.description == tool.description
            assert function.params_json_schema == tool.input_schema

    asyncio.run(main())


def test_images(host: Cofferdam) -> None:
    (item,) = output(host, "test_image_content", {})
    assert item["type"] == "input_image"
    assert item["image_url"].startswith("data:image/png;base64,")


def test_approvals() -> None:
    async def main() -> None:
        with Cofferdam(files="memory") as host:
            arguments = {"file_name": "a.txt"}
            await host.acall("file_access_save_file", file_name="a.txt", content="a")
            for is_approved in (False, True):
                calls = [function_call("file_access_delete_file", arguments, call_id="1")]
                model = ScriptedModel([calls, [assistant_message("done")]])
                agent = Agent[Any](name="test", model=model, tools=[*await tools(host)])
                waiting = await Runner.run(agent, "go")
                (interruption,) = waiting.interruptions
                read = await host.acall("file_access_read_file", file_name="a.txt")
                assert read.text == "a"
                state = waiting.to_state()
                if is_approved:
                    state.approve(interruption)
                else:
                    state.reject(interruption)
                await Runner.run(agent, state, run_config=RunConfig())
            read = await host.acall("file_access_read_file", file_name="a.txt")
            assert "not found" in read.text

    asyncio.run(main())
