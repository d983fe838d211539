"""How a tool says that it could not do what was asked."""

from __future__ import annotations

from typing import Any


class ToolFailure(Exception):
    """A failure that the tool reports in words, so that the model can correct itself.

    Any other exception is a failure too, with the message `<Type>: <text>`; its traceback goes to standard error, which the
    model does not see. A `ToolFailure` is meant, and leaves no traceback.
    """

    def __init__(
        self,
        message: str,
        *,
        suggestion: str | None = None,
        transient: bool | None = None,
        value: Any = None,
    ) -> None:
        """
        Args:
            message: What went wrong: what was expected and what was found.
            suggestion: What the model could do instead: "pass …", "call … first".
            transient: Whether trying again may help. The host may then do so by itself. The model does not see it.
            value: An error value that the model sees instead of message and suggestion; anything that a tool can return as
                JSON. One that cannot be written as JSON is left out, so that the message is still there.
        """
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.transient = transient
        self.value = value

    def __str__(self) -> str:
        return f"{self.message}; {self.suggestion}" if self.suggestion else self.message
