"""Tools for servers of FastMCP (`fastmcp`).

A call that does not succeed is a result with `isError` and the text for the model. Calls that need
approval are asked about by an elicitation of the client; without one they are refused. Clients of
the revision 2026-07-28 answer it in a second request, those of older revisions during the call.
"""

from __future__ import annotations

import json
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from fastmcp.tools.base import Tool as ServerTool
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ClientCapabilities,
    ContentBlock,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import PrivateAttr

from cofferdam import Approval, Cofferdam, Result, Tool

_FORM = {
    "type": "object",
    "properties": {"value": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["value"],
}


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
        approver = _Approver(get_context())
        result = await self._host.acall(self.name, arguments, check=False, approve=approver.decide)
        if approver.request is not None:
            return InputRequiredToolResult(approver.request)
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


class _Approver:
    """Asks the client about one call. `request` is what a call without an answer ends with."""

    def __init__(self, context: Context) -> None:
        self.request: InputRequiredResult | None = None
        self._context = context

    async def decide(self, call: Approval) -> bool:
        context = self._context
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        question = f"Call {call.tool} with {arguments}?"
        answer = (context.input_responses or {}).get("approval")
        if answer is not None:
            return _is_yes(answer)
        elicitation = ClientCapabilities(elicitation=ElicitationCapability())
        if not context.session.check_client_capability(elicitation):
            return False
        request = context.request_context
        if request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            form = ElicitRequestFormParams(message=question, requested_schema=_FORM)
            approval = ElicitRequest(params=form)
            self.request = InputRequiredResult(input_requests={"approval": approval})
            return False
        reply = await context.elicit(question, response_type=["yes", "no"])
        return isinstance(reply, AcceptedElicitation) and reply.data == "yes"


def _is_yes(answer: object) -> bool:
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return False
    return (answer.content or {}).get("value") == "yes"


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
