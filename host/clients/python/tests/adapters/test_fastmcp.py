"""Tools on a server of FastMCP, called by its client in this process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.client.elicitation import ElicitResult
from mcp_types import ImageContent, TextContent

from cofferdam import Cofferdam
from cofferdam.adapters.fastmcp import add_tools


def serve(host: Cofferdam) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("test")
    add_tools(server, host)
    return server


def test_calls_and_errors(host: Cofferdam) -> None:
    async def main() -> None:
        async with Client(serve(host)) as client:
            counted = await client.call_tool("word_count", {"text": "to be"})
            assert counted.structured_content is not None
            assert counted.structured_content["words"] == 2
            assert not counted.is_error
            for tool, arguments, text in [
                ("fail", {"message": "no"}, '"message":"no"'),
                ("panic", {}, "Trap.Unreachable"),
                ("word_count", {}, "Required argument 'text'"),
            ]:
                failed = await client.call_tool(tool, arguments, raise_on_error=False)
                assert failed.is_error
                assert isinstance(failed.content[0], TextContent)
                assert text in failed.content[0].text

    asyncio.run(main())


def test_schemas_reach_the_client(host: Cofferdam) -> None:
    async def main() -> None:
        async with Client(serve(host)) as client:
            shown = {tool.name: tool for tool in await client.list_tools()}
        for tool in host.tools():
            assert shown[tool.name].description == tool.description
            # The server resolves references.
            if "$ref" not in str(tool.input_schema):
                assert shown[tool.name].input_schema == tool.input_schema
        annotations = shown["word_count"].annotations
        assert annotations is not None
        assert annotations.read_only_hint is True

    asyncio.run(main())


def test_images(host: Cofferdam) -> None:
    async def main() -> None:
        async with Client(serve(host)) as client:
            (image,) = (await client.call_tool("test_image_content", {})).content
            assert isinstance(image, ImageContent)
            assert image.mime_type == "image/png"

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("choice", ["yes", "no", None])
def test_approvals(choice: str | None, mode: Any) -> None:
    asked: list[str] = []

    async def answer(message: str, response_type: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        if choice is None:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content={"value": choice})

    async def main() -> None:
        with Cofferdam(files="memory") as host:
            await host.acall("file_access_save_file", file_name="a.txt", content="a")
            async with Client(serve(host), elicitation_handler=answer, mode=mode) as client:
                arguments = {"file_name": "a.txt"}
                ended = await client.call_tool(
                    "file_access_delete_file", arguments, raise_on_error=False
                )
            assert ended.is_error == (choice != "yes")
            assert asked == ['Call file_access_delete_file with {"file_name": "a.txt"}?']
            read = await host.acall("file_access_read_file", arguments)
            assert (read.text == "a") == (choice != "yes")

    asyncio.run(main())


def test_clients_that_cannot_be_asked() -> None:
    async def main() -> None:
        with Cofferdam(files="memory") as host:
            await host.acall("file_access_save_file", file_name="a.txt", content="a")
            async with Client(serve(host)) as client:
                arguments = {"file_name": "a.txt"}
                ended = await client.call_tool(
                    "file_access_delete_file", arguments, raise_on_error=False
                )
            assert ended.is_error
            assert isinstance(ended.content[0], TextContent)
            assert "was not approved" in ended.content[0].text

    asyncio.run(main())
