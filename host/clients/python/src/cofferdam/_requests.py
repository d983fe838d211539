"""Answers to requests of the host: functions, approvals and questions.

A request runs where its call was made: in the thread of `Cofferdam.call`, or on the event loop
of `Cofferdam.acall`, where functions that are not `async` run in threads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import CofferdamError
from ._results import Approval, Progress, Question
from ._wire import encode

if TYPE_CHECKING:
    from ._functions import Function

Form = Mapping[str, Any] | None
Approve = Callable[[Approval], bool | Awaitable[bool]]
"""Approves or refuses a call, which waits for it."""
Ask = Callable[[Question], Form | Awaitable[Form]]
"""Answers a question with the content of its form, or declines it with `None`."""
OnProgress = Callable[[Progress], object]
"""Receives the progress of a call."""


class Handlers:
    """Functions that answer the requests about one call."""

    __slots__ = ("approve", "approve_inner", "ask", "functions", "lacks_approver", "on_progress")

    def __init__(
        self,
        functions: Mapping[str, Function],
        approve: Approve | bool | None,
        ask: Ask | None,
        on_progress: OnProgress | None = None,
        approve_inner: Approve | None = None,
    ) -> None:
        self.functions = functions
        self.approve = approve
        # Decides about the calls of a program of a model.
        self.approve_inner = approve_inner
        self.ask = ask
        self.on_progress = on_progress
        self.lacks_approver = False

    def is_async(self, request: dict[str, Any]) -> bool:
        """Returns true if the answer comes from a function that does not block."""
        if request["type"] != "invoke":
            return False
        function = self.functions.get(request["tool"])
        return function is not None and function.is_async

    def run(self, request: dict[str, Any]) -> Any:
        """Returns the answer to a request, or an awaitable of it."""
        kind = request["type"]
        if kind == "invoke":
            function = self.functions.get(request["tool"])
            if function is None:
                raise CofferdamError(f"there is no function `{request['tool']}`")
            return function.call(**request["arguments"])
        if kind == "approve":
            if request.get("program"):
                inner = self.approve_inner
                return inner and inner(Approval(request["tool"], request["arguments"]))
            if callable(self.approve):
                return self.approve(Approval(request["tool"], request["arguments"]))
            self.lacks_approver = self.approve is None
            return self.approve
        return self.ask and self.ask(Question(request["kind"], request["parameters"]))

    def report(self, tool: str, message: dict[str, Any]) -> None:
        """Handles a `progress` or `log` message."""
        if message["type"] == "log":
            from ._log import log_tool

            log_tool(tool, message)
        elif self.on_progress is not None:
            progress = Progress(message["done"], message.get("total"), message.get("message"))
            self.on_progress(progress)


def answer(request: dict[str, Any], value: Any) -> dict[str, Any]:
    """Returns the message that answers a request with a value."""
    number = request["id"]
    if request["type"] == "invoke":
        return {"type": "returned", "id": number, "value": value}
    if request["type"] == "approve":
        if not isinstance(value, bool):
            raise TypeError(f"expected `approve` to return a bool, found {value!r:.200}")
        return {"type": "approved", "id": number, "allow": value}
    reply = {"action": "decline"} if value is None else {"action": "accept", "content": value}
    return {"type": "answered", "id": number, "answer": reply}


def encode_exception(request: dict[str, Any], error: BaseException) -> bytes:
    """Returns the line that answers a request whose function has raised an exception.

    An exception whose text or value cannot be sent is named.
    """
    try:
        return encode(answer_exception(request, error))
    except Exception as reason:
        message = "the exception cannot be sent"
        if isinstance(reason, (TypeError, ValueError)):
            message += f": {ascii(str(reason))[:500]}"
        described = {"type": type(error).__name__, "message": message}
        return encode({"type": "returned", "id": request["id"], "error": described})


def answer_exception(request: dict[str, Any], error: BaseException) -> dict[str, Any]:
    """Returns the message that answers a request whose function has raised an exception.

    A call is not approved then, and a question is canceled.
    """
    from ._functions import describe_exception
    from ._log import log_exception

    number = request["id"]
    if request["type"] == "invoke":
        return {"type": "returned", "id": number, **describe_exception(request["tool"], error)}
    log_exception(f"the callback `{request['type']}`")
    if request["type"] == "approve":
        return {"type": "approved", "id": number, "allow": False}
    return {"type": "answered", "id": number, "answer": {"action": "cancel"}}
