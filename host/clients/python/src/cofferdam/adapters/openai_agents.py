"""Tools for the OpenAI Agents SDK (`openai-agents`).

Calls of tools that need approval interrupt the run, as `needs_approval` of the SDK does. A call
that does not succeed returns its text to the model and marks the span of the tool as failed.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import FunctionTool, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext
from agents.tracing import SpanError, get_current_span

from cofferdam import Cofferdam, Result, Tool


async def tools(host: Cofferdam) -> list[FunctionTool]:
    """Returns the tools of a host, which is started if it does not run."""
    await asyncio.to_thread(host.start)
    return [_function_tool(host, tool) for tool in host.tools()]


def _function_tool(host: Cofferdam, tool: Tool) -> FunctionTool:
    # The SDK calls a tool that needs approval only after a user has approved the call.
    approve = True if tool.needs_approval else None

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        try:
            arguments = json.loads(text or "{}")
        except ValueError as error:
            return f"The arguments are not JSON: {error}"
        return _output(await host.acall(tool.name, arguments, check=False, approve=approve))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.input_schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,  # The schemas are those of the plugins.
        needs_approval=tool.needs_approval,
    )


def _output(result: Result) -> Any:
    error = result.error()
    if error is not None:
        span = get_current_span()
        if span is not None:
            span.set_error(SpanError(message=result.outcome, data={"error": str(error)}))
        return result.text
    if not any(item["type"] == "blob" for item in result.contents):
        return result.text
    return [_item(item) for item in result.contents]


def _item(item: dict[str, Any]) -> ToolOutputText | ToolOutputImage | ToolOutputFileContent:
    if item["type"] == "blob":
        address = f"data:{item['media_type']};base64,{item['data']}"
        if item["media_type"].startswith("image/"):
            return ToolOutputImage(image_url=address)
        return ToolOutputFileContent(file_data=address)
    text = item.get("text") or item.get("uri") or json.dumps(item.get("json"), ensure_ascii=False)
    return ToolOutputText(text=text)
