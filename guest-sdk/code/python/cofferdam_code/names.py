"""Names in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LISTED_MAX = 20


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Returns the candidate that is most similar to a name, if one is similar."""
    known = {each.lower().replace("_", ""): each for each in candidates}
    found = difflib.get_close_matches(name.lower().replace("_", ""), known, 1, 0.6)
    return known[found[0]] if found else None


def listed(names: Iterable[str]) -> str:
    """Returns names for a sentence, and the number of those that are left out."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:_LISTED_MAX])
    left = len(ordered) - _LISTED_MAX
    return f"{shown} and {left} more" if left > 0 else shown
