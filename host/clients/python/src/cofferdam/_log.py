"""Messages of the host for the operator, in the logger `cofferdam`.

Log messages of tools are text of untrusted code. They go to the logger `cofferdam.tools` with
control characters as escapes.
"""

from __future__ import annotations

import logging
from typing import Any

_notes = logging.getLogger("cofferdam")
_tools = logging.getLogger("cofferdam.tools")
_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


def log_note(message: dict[str, Any]) -> None:
    """Logs a note of the host."""
    _notes.info("%s", message.get("message"))


def log_tool(tool: str, message: dict[str, Any]) -> None:
    """Logs a message that a tool has sent to its caller."""
    level = _LEVELS.get(str(message.get("level")), logging.INFO)
    if _tools.isEnabledFor(level):
        text = str(message.get("message"))
        shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
        _tools.log(level, "%s: %s", tool, shown)


def log_exception(subject: str) -> None:
    """Logs the exception that is being handled, with its traceback."""
    _notes.exception("%s raised an exception", subject)
