"""Write tools for Cofferdam in Python: plain functions in, one WebAssembly component out.

    from cofferdam import ToolFailure, tool

    @tool(read_only=True, idempotent=True)
    def repeat(text: str, times: int = 2) -> str:
        '''Repeats a string.

        Args:
            text: The text to repeat.
            times: Number of repetitions; at most 100.
        '''
        if times > 100:
            raise ToolFailure(f"{times} times is too often", suggestion="pass 100 or less")
        return text * times

`tool` documents parameters and results. `cofferdam build` makes the component. A plugin's tools are
all functions that its main module and the modules that it imports have decorated, in that order.
`cofferdam.testing` calls a tool as the host does, without a host.

A component can do only what its source mentions: if the source does not mention `call`, `client`,
`files`, `secrets`, `tool_calls` or `toolbox`, the component does not import them. They are modules
of this package: `from cofferdam import files`. Nor does it import HTTP unless the source imports
`urllib.request`, `http.client`, requests or httpx, which send requests through the host.

The interpreter is started, and the main module imported, while the component is made. Code at the
top level of a module runs once at that time, costs nothing in calls, and sees no files of a mount.
"""

from cofferdam import call, client, files, secrets, testing, tool_calls, toolbox
from cofferdam._content import Blob, Content, Json, JsonText, Link, Resource, Text
from cofferdam._definition import Annotations, Definition
from cofferdam._failure import RequestDenied, ToolFailure
from cofferdam._tool import tool

__all__ = [
    "Annotations",
    "Blob",
    "Content",
    "Definition",
    "Json",
    "JsonText",
    "Link",
    "RequestDenied",
    "Resource",
    "Text",
    "ToolFailure",
    "call",
    "client",
    "files",
    "secrets",
    "testing",
    "tool",
    "tool_calls",
    "toolbox",
]
