"""Errors of the package. Every one is a `CofferdamError`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._results import Result


class CofferdamError(Exception):
    """Base class of the errors of this package."""


class StartError(CofferdamError):
    """The host did not start.

    `exit_code` is the exit code of the process, or `None` if no process was started.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class HostExited(CofferdamError):
    """The host ended, or was closed, while a call was in progress.

    `exit_code` is negative if a signal ended the process, and `None` if it still runs.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class CallError(CofferdamError):
    """Base class of the errors of a single call. `result` has its outcome and its record."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.result = result

    @property
    def text(self) -> str:
        """The text for a model."""
        return self.message if self.result is None else self.result.text

    @property
    def record(self) -> dict[str, Any] | None:
        """The call record: facts for the operator, never for a model."""
        return None if self.result is None else self.result.record


class RefusedCall(CallError):
    """A call that did not start.

    `code` is `unknown_tool`, `invalid_arguments`, `approval_needed`, `not_approved` or another
    code of the host, or `message_too_long`. `nearest` is the name of a similar tool, and
    `problems` lists what is wrong with the arguments, each with `path`, `code` and `message`.
    """

    def __init__(
        self,
        message: str,
        code: str,
        *,
        nearest: str | None = None,
        problems: list[dict[str, Any]] | None = None,
        result: Result | None = None,
    ) -> None:
        super().__init__(message, result)
        self.code = code
        self.nearest = nearest
        self.problems = problems or []


class ToolFailure(CallError):
    """A failure that a tool reports: it ran to its end and could not do what was asked.

    `Cofferdam.call` raises it. A function of the program raises it to report a failure of its
    own; the model sees message, suggestion and value.
    """

    def __init__(
        self,
        message: str,
        suggestion: str | None = None,
        value: Any = None,
        *,
        result: Result | None = None,
    ) -> None:
        super().__init__(message, result)
        self.suggestion = suggestion
        self.value = value


class ToolError(CallError):
    """A call that ended in an error: a trap, a limit, a denied permission, an invalid result.

    `error_type` is a stable name such as `Trap.Unreachable` or `Timeout`. `detail` is the cause,
    for the operator; it is a note of the exception and no part of its message, because programs
    show messages of exceptions to models.
    """

    def __init__(
        self, message: str, error_type: str | None, detail: str | None, result: Result
    ) -> None:
        super().__init__(message, result)
        self.error_type = error_type
        self.detail = detail
        if detail and sys.version_info >= (3, 11):
            self.add_note(detail)


class CallCancelled(CallError):
    """A call that was canceled."""


class MessageTooLong(ValueError):
    """A message that the host does not read."""

    def refusal(self) -> dict[str, Any]:
        """Returns the end of the call whose message was not sent."""
        return {"outcome": "refused", "code": "message_too_long", "message": str(self)}
