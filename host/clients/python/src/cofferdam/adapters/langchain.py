"""Tools for LangChain and LangGraph (`langchain-core`).

A call that does not succeed becomes a `ToolMessage` with the status `error` and the text for the
model. The artifact of every message is the `Result`. LangChain's core has no approvals: calls that
need one are approved by the function that the host got as `approve`.
"""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from cofferdam import Cofferdam, Result, Tool

Content = str | list[str | dict[str, Any]]


class CofferdamTool(BaseTool):
    """A tool of a host."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    _host: Cofferdam = PrivateAttr()

    def __init__(self, host: Cofferdam, tool: Tool) -> None:
        super().__init__(
            name=tool.name,
            description=tool.description,
            args_schema=tool.input_schema,
            metadata={"source": tool.source, "annotations": tool.annotations},
        )
        self._host = host

    def _run(self, /, **arguments: Any) -> tuple[Content, Result]:
        return _finish(self._host.call(self.name, arguments, check=False))

    async def _arun(self, /, **arguments: Any) -> tuple[Content, Result]:
        return _finish(await self._host.acall(self.name, arguments, check=False))


def tools(host: Cofferdam) -> list[CofferdamTool]:
    """Returns the tools of a host, which is started if it does not run."""
    return [CofferdamTool(host, tool) for tool in host.tools()]


def _finish(result: Result) -> tuple[Content, Result]:
    if result.outcome != "ok":
        raise ToolException(result.text)
    if not any(item["type"] == "blob" for item in result.contents):
        return result.text, result
    return [_block(item) for item in result.contents], result


def _block(item: dict[str, Any]) -> dict[str, Any]:
    """Returns a content block of LangChain."""
    if item["type"] == "text":
        return {"type": "text", "text": item["text"]}
    if item["type"] == "blob":
        kind = item["media_type"].partition("/")[0]
        kind = kind if kind in ("image", "audio", "video") else "file"
        return {"type": kind, "base64": item["data"], "mime_type": item["media_type"]}
    return {"type": "text", "text": str(item.get("text") or item.get("uri") or item.get("json"))}
