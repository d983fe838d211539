"""Prepares the memory with which every call of a component begins.

Each page that a call writes is copied, and restored after it. So the pages should be few, and
adjacent.
"""

from __future__ import annotations

import gc
import struct
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

_MAGIC = b"!stcejbo madreffoC"
"""First bytes of the list, backwards, so that only the list has them."""
_kept: list[Any] = []

_BYTES_HEADER = 17
"""Bytes of a `bytes` object before its content, with the zero byte after it."""
_BLOCK_HEADER = 4
"""Bytes that the allocator needs in each block."""
_BLOCK_MIN = 16
"""Size of the smallest block. Other sizes are multiples of it."""
_FILLERS_MAX = 1 << 16
_ROUNDS = 8
"""Number of runs after which CPython has specialized most code."""
_ADJACENT_MIN = 4
"""Number of adjacent blocks that are not in a hole. Holes for so many blocks of one size were
filled with larger ones."""


def prepare(warm_up: Callable[[], None]) -> None:
    """Prepares the memory for calls like those that `warm_up` makes. Runs after all imports."""
    for _ in range(_ROUNDS):
        warm_up()
    gc.collect()
    _list_objects()
    # A call seldom creates enough garbage for a collection, which would touch the whole memory.
    gc.freeze()
    _fill_holes()


def _fill_holes() -> None:
    """Allocates all free memory between objects, so that what is allocated later is adjacent.

    The allocator uses the free block that fits best. After the imports of a plugin, free blocks are
    on most pages.
    """
    fillers: list[Any] = [None] * _FILLERS_MAX
    _kept.append(fillers)
    count = 0
    for size in _block_sizes():
        length = size - _BLOCK_HEADER - _BYTES_HEADER
        adjacent = last = 0
        while adjacent < _ADJACENT_MIN and count < _FILLERS_MAX:
            filler = bytes(length) if length > 1 else object()
            fillers[count] = filler
            count += 1
            adjacent = adjacent + 1 if id(filler) == last + size else 0
            last = id(filler)


def _block_sizes() -> list[int]:
    sizes = list(range(_BLOCK_MIN, 512, _BLOCK_MIN))
    while sizes[-1] < 64 << 10:
        sizes.append((sizes[-1] * 5 // 4) // _BLOCK_MIN * _BLOCK_MIN)
    return sizes[::-1]


def _list_objects() -> None:
    """Keeps a list of all objects in memory, for a build step that makes them immortal: the magic
    bytes, the numbers of types and of other objects, and their addresses; all numbers are
    little-endian with 32 bits.

    CPython counts references in the objects themselves, so a call writes to nearly every page that
    it reads. Counts of immortal objects are not changed. No function of Python makes objects
    immortal, so `cofferdam build` does it in the component.
    """
    types_, others = _addresses()
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
        if isinstance(each, types.CodeType):
            waiting.extend((each.co_consts, each.co_names, each.co_filename, each.co_name, each.co_qualname))
    return found


def _frames() -> Iterable[int]:
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        yield id(frame)
        # Code at the top level of a module is freed when it has run.
        yield id(frame.f_code)
        frame = frame.f_back
