"""The toolset of Pydantic AI, with its scripted models."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from cofferdam import Cofferdam
from cofferdam.adapters.pydantic_ai import CofferdamToolset


def answers(host: Cofferdam, tool: str, arguments: dict[str, Any]) -> list[Any]:
    """Returns the parts that the model gets for a call."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart(tool, arguments)])
        return ModelResponse([TextPart("done")])

    agent = Agent(FunctionModel(respond), toolsets=[CofferdamToolset(host)])
    return list(asyncio.run(agent.run("go")).all_messages()[2].parts)


def test_calls_and_errors(host: Cofferdam) -> None:
    (part,) = answers(host, "word_count", {"text": "to be"})
    assert isinstance(part, ToolReturnPart)
    assert part.content == {"words": 2, "lines": 1, "characters": 5, "longest": "to"}
    assert part.outcome == "success"
    (part,) = answers(host, "fail", {"message": "no"})
    assert part.outcome == "failed"
    assert part.content == host.call("fail", message="no", check=False).text
    (part,) = answers(host, "panic", {})
    assert part.outcome == "failed"
    assert "Trap.Unreachable" in part.model_response_str()
    (part,) = answers(host, "word_count", {})
    assert part.outcome == "retried"
    assert "Required argument 'text'" in part.model_response_str()


def test_schemas_reach_the_model(host: Cofferdam) -> None:
    model = TestModel(call_tools=[])
    asyncio.run(Agent(model, toolsets=[CofferdamToolset(host)]).run("go"))
    assert model.last_model_request_parameters is not None
    shown = {tool.name: tool for tool in model.last_model_request_parameters.function_tools}
    for tool in host.tools():
        assert shown[tool.name].description == tool.description
        assert shown[tool.name].parameters_json_schema == tool.input_schema


def test_images(host: Cofferdam) -> None:
    (part, *_) = answers(host, "test_image_content", {})
    content = part.content[0] if isinstance(part.content, list) else part.content
    assert isinstance(content, BinaryContent)
    assert content.media_type == "image/png"
    assert content.data.startswith(b"\x89PNG")


def test_approvals() -> None:
    with Cofferdam(files="memory") as host:
        host.call("file_access_save_file", file_name="a.txt", content="a")

        def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if len(messages) == 1:
                call = ToolCallPart("file_access_delete_file", {"file_name": "a.txt"}, "call-1")
                return ModelResponse([call])
            return ModelResponse([TextPart("done")])

        agent = Agent(
            FunctionModel(respond),
            toolsets=[CofferdamToolset(host)],
            output_type=[str, DeferredToolRequests],
        )
        for is_approved in (False, True):
            waiting = asyncio.run(agent.run("go"))
            assert isinstance(waiting.output, DeferredToolRequests)
            assert waiting.output.approvals[0].tool_call_id == "call-1"
            assert host.call("file_access_read_file", file_name="a.txt").text == "a"
            results = DeferredToolResults(approvals={"call-1": is_approved})
            resumed = agent.run(
                message_history=waiting.all_messages(), deferred_tool_results=results
            )
            asyncio.run(resumed)
        assert "not found" in host.call("file_access_read_file", file_name="a.txt").text
