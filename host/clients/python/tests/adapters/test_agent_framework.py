"""Tools and code mode of Microsoft Agent Framework, with a scripted chat client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentResponse,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    tool,
)

from cofferdam import Cofferdam
from cofferdam.adapters.agent_framework import CofferdamCodeActProvider, tools


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Calls a tool, then ends."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        super().__init__()
        self._call = Content.from_function_call("call-1", name, arguments=arguments)
        self.shown: list[Any] = []

    async def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> ChatResponse:
        self.shown = list(options.get("tools") or ())
        contents = [content for message in messages for content in message.contents]
        has_result = any(content.type == "function_result" for content in contents)
        reply = [Content.from_text("done")] if has_result else [self._call]
        return ChatResponse(messages=[Message(role="assistant", contents=reply)])


def result_of(response: AgentResponse[Any]) -> Content:
    """Returns what the model gets for the call."""
    contents = [content for message in response.messages for content in message.contents]
    (result,) = [content for content in contents if content.type == "function_result"]
    return result


def call(host: Cofferdam, name: str, arguments: dict[str, Any]) -> Content:
    async def main() -> Content:
        agent = Agent(ScriptedClient(name, arguments), tools=await tools(host))
        return result_of(await agent.run("go"))

    return asyncio.run(main())


def test_calls_and_errors(host: Cofferdam) -> None:
    counted = call(host, "word_count", {"text": "to be"})
    assert counted.result == '{"words":2,"lines":1,"characters":5,"longest":"to"}'
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        ("fail", {"message": "no"}, '"message":"no"', "failure"),
        ("panic", {}, "Trap.Unreachable", "error"),
        ("word_count", {"text": "a", "min_length": -1}, "'min_length'", "refused"),
    ]
    for name, arguments, text, outcome in cases:
        failed = call(host, name, arguments)
        assert text in str(failed.result)
        assert failed.items is not None
        assert failed.items[0].additional_properties["outcome"] == outcome


def test_schemas_reach_the_model(host: Cofferdam) -> None:
    async def main() -> None:
        client = ScriptedClient("ok", {})
        await Agent(client, tools=await tools(host)).run("go")
        shown = {function.name: function for function in client.shown}
        for declared in host.tools():
            assert shown[declared.name].description == declared.description
            assert shown[declared.name].parameters() == declared.input_schema

    asyncio.run(main())


def test_images(host: Cofferdam) -> None:
    image = call(host, "test_image_content", {})
    assert image.items is not None
    assert image.items[0].media_type == "image/png"


def test_approvals() -> None:
    async def main() -> None:
        with Cofferdam(files="memory") as host:
            arguments = {"file_name": "a.txt"}
            await host.acall("file_access_save_file", file_name="a.txt", content="a")
            for is_approved in (False, True):
                client = ScriptedClient("file_access_delete_file", arguments)
                agent = Agent(client, tools=await tools(host))
                session = agent.create_session()
                waiting = await agent.run("go", session=session)
                (request,) = waiting.user_input_requests
                assert (await host.acall("file_access_read_file", arguments)).text == "a"
                answer = request.to_function_approval_response(is_approved)
                await agent.run(Message(role="user", contents=[answer]), session=session)
            read = await host.acall("file_access_read_file", arguments)
            assert "not found" in read.text

    asyncio.run(main())


def test_code_mode() -> None:
    @tool(approval_mode="never_require")
    def population(city: str) -> int:
        """Returns the population of a city."""
        return {"Bern": 134_000}[city]

    async def main() -> None:
        provider = CofferdamCodeActProvider([population], files="memory")
        with provider.host:
            code = 'return (await tools.population({city: "Bern"})) / 1000'
            client = ScriptedClient("run_code", {"code": code})
            response = await Agent(client, context_providers=[provider]).run("go")
            assert [function.name for function in client.shown] == ["run_code"]
            assert "population" in client.shown[0].description
            assert "134" in str(result_of(response).result)

    asyncio.run(main())


def test_code_mode_refuses_tools_that_need_approval() -> None:
    @tool(approval_mode="always_require")
    def pay(amount: int) -> None:
        """Pays."""

    assert isinstance(pay, FunctionTool)
    with pytest.raises(ValueError, match="`pay` needs approval"):
        CofferdamCodeActProvider([pay])
