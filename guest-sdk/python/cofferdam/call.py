"""The call that is being served.

In a unit test nobody calls and nobody listens: there is no id, no session, no end to the time, and progress goes nowhere, unless
`cofferdam.testing.host` says otherwise.
"""

from __future__ import annotations

import math
from typing import Any

from cofferdam import _host
from cofferdam._json import whole


class _Nobody:
    """Answers like the host outside of a call."""

    def id(self) -> str:
        return ""

    def session(self) -> str | None:
        return None

    def time_left_ms(self) -> float:
        return math.inf

    def cancelled(self) -> bool:
        return False

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        pass


_bindings: Any = _host.interface("call", _Nobody())


def id() -> str:
    """The id of the call, unique within its session; empty if there is none."""
    return str(_bindings.id())


def session() -> str | None:
    """The session that the call belongs to, if it belongs to one."""
    found: str | None = _bindings.session()
    return found


def time_left() -> float:
    """Seconds until the host ends the call as timed out; infinite in a unit test."""
    return float(_bindings.time_left_ms()) / 1000


def cancelled() -> bool:
    """Whether the caller has given up. The host stops a cancelled call by itself, soon; a tool that asks can stop sooner."""
    return bool(_bindings.cancelled())


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Says how far the call has come: `progress(row, rows, "reading rows")`.

    Args:
        done: In a unit of the tool's own. It should not fall.
        total: In the same unit, if it is known.
        message: What is being done. The host may leave reports out when they come too fast.
    """
    total = None if total is None else float(total)
    _bindings.progress(float(done), total, None if message is None else whole(message))
