"""A toolset for Pydantic AI (`pydantic-ai-slim`).

Calls that need approval use the framework's deferred tools: the run ends with
`DeferredToolRequests`, and an approved call runs in the next one. Arguments that do not decode are
a `ModelRetry`; other calls that do not succeed are a `ToolFailed` with the text for the model.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from pydantic_ai import ApprovalRequired, BinaryContent, ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from cofferdam import Cofferdam, RefusedCall, Result, Tool

# The host decodes the arguments and names every problem.
_ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema())


class CofferdamToolset(AbstractToolset[Any]):
    """The tools of a host, which is started if it does not run."""

    def __init__(self, host: Cofferdam, *, id: str | None = None, max_retries: int = 1) -> None:  # noqa: A002 - the framework's name
        self._host = host
        self._id = id
        self._max_retries = max_retries

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        await asyncio.to_thread(self._host.start)
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=_definition(tool),
                max_retries=self._max_retries,
                args_validator=_ANY_ARGUMENTS,
            )
            for tool in self._host.tools()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        approved = True if ctx.tool_call_approved else None
        result = await self._host.acall(name, tool_args, check=False, approve=approved)
        error = result.error()
        if error is None:
            return _content(result)
        if isinstance(error, RefusedCall) and error.code == "approval_needed":
            raise ApprovalRequired
        if isinstance(error, RefusedCall) and error.code == "invalid_arguments":
            raise ModelRetry(result.text)
        raise ToolFailed(result.text)


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.input_schema,
        kind="unapproved" if tool.needs_approval else "function",
        metadata={"source": tool.source, "annotations": tool.annotations},
    )


def _content(result: Result) -> Any:
    """Returns the value of a result, with binary items in the form of the framework."""
    if not any(item["type"] == "blob" for item in result.contents):
        return result.text if result.value is None else result.value
    return [
        BinaryContent(base64.b64decode(item["data"]), media_type=item["media_type"])
        if item["type"] == "blob"
        else item.get("text", item)
        for item in result.contents
    ]
