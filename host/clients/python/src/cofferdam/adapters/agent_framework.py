"""Tools and code mode for Microsoft Agent Framework (`agent-framework-core`).

Calls of tools that need approval use the framework's approval requests. The framework hides the
texts of exceptions from the model, so a call that does not succeed returns its text, in a content
whose `additional_properties` have the `outcome`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Any

from agent_framework import AgentSession, Content, ContextProvider, FunctionTool, SessionContext

from cofferdam import Cofferdam, Result, Tool


async def tools(host: Cofferdam) -> list[FunctionTool]:
    """Returns the tools of a host, which is started if it does not run."""
    await asyncio.to_thread(host.start)
    return [_function_tool(host, tool) for tool in host.tools()]


class CofferdamCodeActProvider(ContextProvider):
    """Offers `run_code`, a tool that runs programs of the model in the sandbox of a host.

    Programs call the tools of the host and the `tools` of the framework that are given here. A tool
    with `approval_mode="always_require"` is refused: programs could call it without approval.
    The arguments besides `tools` are those of `Cofferdam`. Close the provider's `host` at the end.
    """

    def __init__(
        self,
        tools: Sequence[FunctionTool] = (),
        *,
        source_id: str = "cofferdam_codeact",
        **options: Any,
    ) -> None:
        super().__init__(source_id)
        self.host = Cofferdam(**{"code": "only", **options})
        for tool in tools:
            _add_function(self.host, tool)

    async def before_run(
        self,
        *,
        agent: Any,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        context.extend_tools(self.source_id, await tools(self.host))


def _add_function(host: Cofferdam, tool: FunctionTool) -> None:
    if tool.approval_mode == "always_require":
        raise ValueError(f"`{tool.name}` needs approval, for which a program cannot wait")

    async def call(**arguments: Any) -> Any:
        return await tool.invoke(arguments=arguments, skip_parsing=True)

    host.tool(name=tool.name, description=tool.description, input_schema=tool.parameters())(call)


def _function_tool(host: Cofferdam, tool: Tool) -> FunctionTool:
    # The framework calls a tool that requires approval only after a user has approved the call.
    approve = True if tool.needs_approval else None

    async def call(**arguments: Any) -> list[Content]:
        return _content(await host.acall(tool.name, arguments, check=False, approve=approve))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        func=call,
        input_model=tool.input_schema,
        approval_mode="always_require" if tool.needs_approval else "never_require",
    )


def _content(result: Result) -> list[Content]:
    if result.outcome != "ok":
        properties = {"outcome": result.outcome}
        return [Content.from_text(result.text, additional_properties=properties)]
    if not any(item["type"] == "blob" for item in result.contents):
        return [Content.from_text(result.text)]
    return [_item(item) for item in result.contents]


def _item(item: dict[str, Any]) -> Content:
    if item["type"] == "blob":
        return Content.from_data(base64.b64decode(item["data"]), item["media_type"])
    text = item.get("text") or item.get("uri") or json.dumps(item.get("json"), ensure_ascii=False)
    return Content.from_text(text)
