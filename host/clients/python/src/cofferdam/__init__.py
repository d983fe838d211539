"""Runs tools of WebAssembly plugins, each call in a fresh sandbox.

This package starts the program `cofferdam` and talks to it over a pipe.

    from cofferdam import Cofferdam

    with Cofferdam(plugins="text.wasm") as host:
        print(host.call("word_count", text="to be or not to be").value)
"""

from ._errors import (
    CallCancelled,
    CallError,
    CofferdamError,
    HostExited,
    RefusedCall,
    StartError,
    ToolError,
    ToolFailure,
)
from ._host import Cofferdam
from ._requests import Approve, Ask, OnProgress
from ._results import Approval, Progress, Question, Result, Tool, UnavailableSource

__all__ = [
    "Approval",
    "Approve",
    "Ask",
    "CallCancelled",
    "CallError",
    "Cofferdam",
    "CofferdamError",
    "HostExited",
    "OnProgress",
    "Progress",
    "Question",
    "RefusedCall",
    "Result",
    "StartError",
    "Tool",
    "ToolError",
    "ToolFailure",
    "UnavailableSource",
]
