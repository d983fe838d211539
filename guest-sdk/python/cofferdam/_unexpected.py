"""Errors that the author of a tool did not mean for the model."""

from __future__ import annotations

from typing import Any

from cofferdam import _host
from cofferdam._failure import ToolFailure
from cofferdam._json import whole

# Packages whose exceptions wrap the error of a request.
_HTTP = frozenset(("http", "httpcore", "httpx", "requests", "urllib", "urllib3"))


class _Nobody:
    """Shows everything, where there is no host to decide."""

    def unexpected(self, type_name: str, message: str) -> str:
        return f"{type_name}: {message}" if message else type_name


_bindings: Any = _host.imported("errors") or _Nobody()


def failure(error: BaseException) -> ToolFailure:
    """Returns the failure that an exception of a tool becomes: the `ToolFailure` that it is or that
    an HTTP library has wrapped, or one with the message of the host.
    """
    meant = _meant(error)
    if meant is not None:
        return meant
    try:
        text = str(error)
    except Exception:
        text = ""
    return ToolFailure(_bindings.unexpected(whole(type(error).__name__), whole(text)))


def _meant(error: BaseException) -> ToolFailure | None:
    each: BaseException | None = error
    while each is not None and not isinstance(each, ToolFailure):
        package = type(each).__module__.partition(".")[0]
        each = each.__cause__ or each.__context__ if package in _HTTP else None
    return each
