"""What a plugin says about its tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Annotations:
    """Hints about what a call does, as in MCP. They grant nothing, and `None` means unknown."""

    read_only: bool | None = None
    """The tool changes nothing."""
    destructive: bool | None = None
    """The tool may destroy something: delete, overwrite, send."""
    idempotent: bool | None = None
    """Calling twice with the same arguments changes nothing more."""
    open_world: bool | None = None
    """The tool reaches things outside the host, such as the network."""
    long_running: bool | None = None
    """The tool may take minutes."""


@dataclass(frozen=True)
class Definition:
    """A tool as it is published."""

    name: str
    """1 to 128 characters out of `A-Z a-z 0-9 _ . -`, unique within the plugin."""
    description: str
    """What the tool does and when to use it, for the model."""
    input_schema: dict[str, Any]
    """A JSON Schema 2020-12 object schema."""
    output_schema: dict[str, Any] | None = None
    """The schema of the value of a success, if it is published."""
    title: str | None = None
    """A short name for people."""
    annotations: Annotations = field(default_factory=Annotations)
    """Hints for whoever decides about a call."""
