"""Secrets that are granted by name.

A tool that only sends a secret in a request does not need this module: the user can bind the secret
to the request, and the tool never sees it. In a unit test only the secrets of
`cofferdam.testing.host` are granted.
"""

from __future__ import annotations

from typing import Any

from cofferdam import _host
from cofferdam._failure import ToolFailure


class AccessDenied(ToolFailure):
    """No secret of this name is granted, whether it exists or not."""


class _Nobody:
    """Grants nothing."""

    def get(self, name: str) -> str:
        raise _host.Err(None)


_bindings: Any = _host.interface("secrets", _Nobody())


def get(name: str) -> str:
    """Returns the value of a secret. The manifest of the plugin must request it:
    `secrets = ["github"]`.

    Raises:
        AccessDenied: If it is not granted. If this is not caught, it becomes a failure that says
            so.
    """
    try:
        return str(_bindings.get(name))
    except _host.Err:
        raise AccessDenied(
            f"the secret `{name}` is not granted", suggestion="ask the user to grant it", transient=False
        ) from None
