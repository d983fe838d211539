"""The current call.

In a unit test there is no id, no session and no deadline, and progress is dropped, unless
`cofferdam.testing.host` defines them.
"""

from __future__ import annotations

import math
from typing import Any

from cofferdam import _host
from cofferdam._json import whole


class _Nobody:
    """Returns what the host returns outside a call."""

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
    """Returns the id of the call, unique within its session. Empty outside a call."""
    return str(_bindings.id())


def session() -> str | None:
    """Returns the session of the call, if there is one."""
    found: str | None = _bindings.session()
    return found


def time_left() -> float:
    """Returns the seconds until the host stops the call with a timeout; infinite in a unit test."""
    return float(_bindings.time_left_ms()) / 1000


def cancelled() -> bool:
    """Returns whether the caller has canceled the call. The host soon stops a canceled call by
    itself; a tool that checks can stop sooner.
    """
    return bool(_bindings.cancelled())


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Reports progress: `progress(row, rows, "reading rows")`. The host may drop reports that come
    too fast.

    Args:
        done: Work done so far, in a unit that the tool chooses. It should not decrease.
        total: Total work in the same unit, if it is known.
        message: Description of the current work.
    """
    total = None if total is None else float(total)
    _bindings.progress(float(done), total, None if message is None else whole(message))
