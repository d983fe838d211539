"""Reads docstrings: the text before the sections, and the description of each name in a section.

Sections are those of Google's style guide. `Args:` and `Attributes:` are read. Other sections are
not for the model and are skipped.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Attributes|Returns|Return|Raises|Yields|Examples?|Notes?|Todo|See Also):$"
)
_NAMED = {"Args", "Arguments", "Parameters", "Attributes"}
_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


@dataclass
class Docs:
    """Content of a docstring."""

    text: str = ""
    """Text before the first section."""
    names: dict[str, str] = field(default_factory=dict)
    """Description of each parameter or attribute, on one line."""


def read(docstring: str | None) -> Docs:
    """Parses a docstring."""
    if not docstring:
        return Docs()
    lines = inspect.cleandoc(docstring).splitlines()
    first = next((at for at, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    docs = Docs("\n".join(lines[:first]).strip())
    sections: list[tuple[str, list[str]]] = []
    for line in lines[first:]:
        heading = _SECTION.match(line)
        if heading:
            sections.append((heading.group(1), []))
        else:
            sections[-1][1].append(line)
    for heading_text, body in sections:
        if heading_text in _NAMED:
            docs.names.update(_items(body))
    return docs


def _items(lines: list[str]) -> dict[str, str]:
    """Parses the items of a section. A line that is indented further than the first one continues
    the item before it.
    """
    items: dict[str, str] = {}
    indent, name = None, ""
    for line in lines:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        indent = depth if indent is None else indent
        item = _ITEM.match(line.strip()) if depth <= indent else None
        if item:
            name = item.group(1)
            items[name] = item.group(2).strip()
        elif name:
            items[name] = f"{items[name]} {line.strip()}".strip()
    return items
