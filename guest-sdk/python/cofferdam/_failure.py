"""Failures of tools."""

from __future__ import annotations

from typing import Any


class ToolFailure(Exception):
    """Failure that the tool reports with a message, so that the model can correct itself.

    Any other exception becomes a failure too, but its text is for the operator: the model sees the
    name of its type. Its traceback goes to standard error, which the model does not see either. A
    `ToolFailure` leaves no traceback.
    """

    def __init__(
        self,
        message: str,
        *,
        suggestion: str | None = None,
        transient: bool | None = None,
        value: Any = None,
    ) -> None:
        """Creates a failure.

        Args:
            message: The reason: what was expected and what was found.
            suggestion: Advice for the model's next attempt: "pass …", "call … first".
            transient: Whether a retry may help. The host may then retry the call by itself. The
                model does not see it.
            value: An error value that the model sees instead of message and suggestion; anything
                that a tool can return as JSON. A value that cannot be serialized is dropped, so
                that the model sees the message.
        """
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.transient = transient
        self.value = value

    def __str__(self) -> str:
        return f"{self.message}; {self.suggestion}" if self.suggestion else self.message


class RequestDenied(ToolFailure, ConnectionError):
    """Error of an HTTP request that no grant covers. The message says how to grant it.

    The libraries wrap it as they wrap an error of a connection: `urllib.request.urlopen` raises a
    `URLError` with it as `reason`. If the tool does not catch that, the model sees the message.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)
