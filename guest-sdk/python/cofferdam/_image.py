"""Lists the objects of a component's memory, for a build step that makes them immortal.

CPython counts references in the objects themselves, so a call writes to nearly every page that it
reads, and each of these pages is copied. Counts of immortal objects are not changed. No function of
Python makes objects immortal, so `cargo xtask guests` does it in the component.
"""

from __future__ import annotations

import gc
import struct
import sys
import types
from collections.abc import Iterable
from typing import Any

_MAGIC = b"!stcejbo madreffoC"
"""First bytes of the list, backwards, so that the list is the only place with them."""
_kept: list[bytearray] = []


def list_objects() -> None:
    """Keeps a list of all objects in memory: the magic bytes, the numbers of types and of other
    objects, and their addresses; all numbers are little-endian with 32 bits.

    Runs after everything else, because an object that is freed later must not be in the list.
    """
    gc.unfreeze()
    types_, others = _addresses()
    gc.freeze()
    count = len(types_) + len(others)
    # With its final size, because a smaller buffer would leave a copy behind.
    made = bytearray(len(_MAGIC) + 4 * (count + 2))
    struct.pack_into(f"<{count + 2}I", made, len(_MAGIC), len(types_), len(others), *types_, *others)
    for index, byte in enumerate(reversed(_MAGIC)):
        made[index] = byte
    _kept.append(made)


def _addresses() -> tuple[list[int], list[int]]:
    waiting: list[Any] = gc.get_objects()
    # Frames end soon after this.
    seen = {id(waiting), *_frames()}
    seen.add(id(seen))
    found: tuple[list[int], list[int]] = ([], [])
    seen.update((id(found), id(found[0]), id(found[1])))
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, types.FrameType):
            continue
        seen.add(id(each))
        found[0 if isinstance(each, type) else 1].append(id(each))
        waiting.extend(gc.get_referents(each))
    return found


def _frames() -> Iterable[int]:
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        yield id(frame)
        # Code at the top level of a module is freed when it has run.
        yield id(frame.f_code)
        frame = frame.f_back
