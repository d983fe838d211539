"""Definitions of a plugin's tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Annotations:
    """Hints about the effects of a call, as in MCP. They grant nothing, and `None` means unknown.
    """

    read_only: bool | None = None
    """True if the tool changes nothing."""
    destructive: bool | None = None
    """True if the tool may destroy something: delete, overwrite, send."""
    idempotent: bool | None = None
    """True if a second call with the same arguments has no further effect."""
    open_world: bool | None = None
    """True if the tool accesses systems outside the host, such as the network."""
    long_running: bool | None = None
    """True if the tool may take minutes."""


@dataclass(frozen=True)
class Definition:
    """Published definition of a tool."""

    name: str
    """Name: 1 to 128 characters from `A-Z a-z 0-9 _ . -`, unique within the plugin."""
    description: str
    """Purpose of the tool and when to use it, for the model."""
    input_schema: dict[str, Any]
    """JSON Schema 2020-12 object schema of the arguments."""
    output_schema: dict[str, Any] | None = None
    """Schema of the value of a success, if it is published."""
    title: str | None = None
    """Display name for users."""
    annotations: Annotations = field(default_factory=Annotations)
    """Hints for approvals."""
