"""Tools for servers of FastMCP (`fastmcp`).

A call that does not succeed is a result with `isError` and the text for the model. Calls that need
approval are asked about by an elicitation of the client; without one they are refused.
"""

from __future__ import annotations

import json
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.tools.base import Tool as ServerTool
from fastmcp.tools.base import ToolResult
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    ToolAnnotations,
)
from pydantic import PrivateAttr

from cofferdam import Approval, Cofferdam, Result, Tool


class CofferdamTool(ServerTool):
    """A tool of a host."""

    _host: Cofferdam = PrivateAttr()

    @classmethod
    def of(cls, host: Cofferdam, tool: Tool) -> CofferdamTool:
        """Returns the server's form of a tool."""
        hints = tool.annotations
        created = cls(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            parameters=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=ToolAnnotations(
                read_only_hint=hints.get("read_only"),
                destructive_hint=hints.get("destructive"),
                idempotent_hint=hints.get("idempotent"),
                open_world_hint=hints.get("open_world"),
            ),
        )
        created._host = host
        return created

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        result = await self._host.acall(self.name, arguments, check=False, approve=_approve)
        structured = result.value if self.output_schema and result.outcome == "ok" else None
        return ToolResult(
            content=_content(result),
            structured_content=structured,
            is_error=result.outcome != "ok",
        )


def add_tools(server: FastMCP[Any], host: Cofferdam) -> None:
    """Adds the tools of a host, which is started if it does not run, to a server."""
    for tool in host.tools():
        server.add_tool(CofferdamTool.of(host, tool))


async def _approve(request: Approval) -> bool:
    arguments = json.dumps(request.arguments, ensure_ascii=False)
    question = f"Call {request.tool} with {arguments}?"
    answer = await get_context().elicit(question, response_type=["yes", "no"])
    return isinstance(answer, AcceptedElicitation) and answer.data == "yes"


def _content(result: Result) -> list[ContentBlock]:
    if not any(item["type"] == "blob" for item in result.contents):
        return [TextContent(type="text", text=result.text)]
    return [_block(item) for item in result.contents]


def _block(item: dict[str, Any]) -> ContentBlock:
    if item["type"] != "blob":
        text = item.get("text") or item.get("uri") or json.dumps(item.get("json"))
        return TextContent(type="text", text=text)
    data, media_type = item["data"], item["media_type"]
    if media_type.startswith("image/"):
        return ImageContent(type="image", data=data, mime_type=media_type)
    if media_type.startswith("audio/"):
        return AudioContent(type="audio", data=data, mime_type=media_type)
    resource = BlobResourceContents(uri="cofferdam:result", blob=data, mime_type=media_type)
    return EmbeddedResource(type="resource", resource=resource)
