"""Tools of LangChain, called by a scripted chat model."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from cofferdam import Cofferdam, Result
from cofferdam.adapters.langchain import CofferdamTool, tools


def message(tool: CofferdamTool, arguments: dict[str, Any], *, is_async: bool) -> ToolMessage:
    """Returns the message for a call that a model has made."""
    call = ToolCall(name=tool.name, args=arguments, id="1", type="tool_call")
    model = FakeMessagesListChatModel(responses=[AIMessage("", tool_calls=[call])])
    (made,) = model.invoke("go").tool_calls
    ended = asyncio.run(tool.ainvoke(made)) if is_async else tool.invoke(made)
    assert isinstance(ended, ToolMessage)
    return ended


def test_calls_and_errors(host: Cofferdam) -> None:
    by_name = {tool.name: tool for tool in tools(host)}
    for is_async in (False, True):
        ended = message(by_name["word_count"], {"text": "to be"}, is_async=is_async)
        assert ended.status == "success"
        assert ended.content == '{"words":2,"lines":1,"characters":5,"longest":"to"}'
        assert isinstance(ended.artifact, Result)
        failed = message(by_name["fail"], {"message": "no"}, is_async=is_async)
        assert failed.status == "error"
        assert failed.content == host.call("fail", message="no", check=False).text
        invalid = message(by_name["word_count"], {"min_length": 1}, is_async=is_async)
        assert invalid.status == "error"
        assert "Required argument 'text'" in str(invalid.content)


def test_schemas_reach_the_model(host: Cofferdam) -> None:
    declared = {tool.name: tool for tool in host.tools()}
    for tool in tools(host):
        function = convert_to_openai_tool(tool)["function"]
        schema = declared[tool.name].input_schema
        assert function["description"] == declared[tool.name].description
        assert function["parameters"]["properties"].keys() == schema["properties"].keys()


def test_images(host: Cofferdam) -> None:
    by_name = {tool.name: tool for tool in tools(host)}
    ended = message(by_name["test_image_content"], {}, is_async=False)
    (block,) = ended.content_blocks
    assert (block["type"], block["mime_type"]) == ("image", "image/png")  # type: ignore[typeddict-item]


def test_arguments_with_names_of_the_framework() -> None:
    def echo(config: str, run_manager: str, self: str) -> list[str]:
        return [config, run_manager, self]

    with Cofferdam(functions=[echo]) as host:
        (tool,) = tools(host)
        arguments = {"config": "a", "run_manager": "b", "self": "c"}
        assert message(tool, arguments, is_async=False).content == '["a","b","c"]'
