"""Secrets that a person has granted by name.

A tool that only sends a secret in a request does not need this: a person can bind the secret to the request, and the tool never
sees it. In a unit test there are none but those that `cofferdam.testing.host` gives.
"""

from __future__ import annotations

from typing import Any

from cofferdam import _host
from cofferdam._failure import ToolFailure


class AccessDenied(ToolFailure):
    """No secret of that name was granted, whether there is one or not."""


class _Nobody:
    """Grants nothing."""

    def get(self, name: str) -> str:
        raise _host.Err(None)


_bindings: Any = _host.interface("secrets", _Nobody())


def get(name: str) -> str:
    """The value of a secret. The manifest of the plugin has to ask for it: `secrets = ["github"]`.

    Raises:
        AccessDenied: If it was not granted. Uncaught it is a failure that says so.
    """
    try:
        return str(_bindings.get(name))
    except _host.Err:
        raise AccessDenied(
            f"the secret `{name}` is not granted", suggestion="ask the user to grant it", transient=False
        ) from None
