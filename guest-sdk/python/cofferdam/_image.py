"""Prepares the memory with which every call of a component begins.

Each page that a call writes is copied, and restored after it. So the pages should be few, and
adjacent.
"""

from __future__ import annotations

import gc
import opcode
import os
import struct
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_OBJECTS = b"!stcejbo madreffoC"
"""First bytes of the list of objects, backwards, so that only the list has them."""
_CONSTANTS = b"!stnatsnoc madreffoC"
"""First bytes of the list of instructions, backwards."""
_opcodes: dict[str, int] = {**opcode.opmap, **getattr(opcode, "_specialized_opmap", {})}
_is_known = sys.version_info[:2] == (3, 14)
"""True if the code of this CPython has the form that this module knows. Others are slower."""
_kept: list[Any] = []
_filled = 0

_BYTES_HEADER = 17
"""Bytes of a `bytes` object before its content, with the zero byte after it."""
_BLOCK_HEADER = 4
"""Bytes that the allocator needs in each block."""
_BLOCK_MIN = 16
"""Size of the smallest block. Other sizes are multiples of it."""
_fillers: list[Any] = [None] * (1 << 16)
"""Blocks in holes. The list has its final size, because one that grows would leave holes."""
_ROUNDS = 8
"""Number of runs after which CPython has specialized most code."""
_ADJACENT_MIN = 4
"""Number of adjacent blocks that are not in a hole. Holes for so many blocks of one size were
filled with larger ones."""


def prepare(calls: Sequence[Callable[[], None]]) -> None:
    """Prepares the memory for calls like these. Runs after all imports.

    Args:
        calls: Warm the interpreter up, the most usual one first.
    """
    # componentize-py removes them afterwards, which would leave holes.
    _kept.append((list(os.environ.items()), list(sys.argv)))
    for call in calls:
        call()
    if _is_known:
        _gather_code(calls)
    for _ in range(_ROUNDS):
        for call in calls:
            call()
    gc.collect()
    _list_objects()
    if _is_known:
        _list_constants()
    # A call seldom creates enough garbage for a collection, which would touch the whole memory.
    gc.freeze()


def fill() -> None:
    """Uses up free memory between objects, so that what is allocated later is adjacent."""
    # Empties the lists of freed objects, which CPython uses first.
    gc.collect()
    _fill_holes()


def _gather_code(calls: Sequence[Callable[[], None]]) -> None:
    """Copies the code that runs in calls to adjacent memory: CPython writes into code that runs, for
    example which way branches go."""
    functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType) and _has_run(each.__code__)]
    originals = [each.__code__ for each in functions]
    copies: dict[int, tuple[types.CodeType, types.CodeType]] = {}
    for function, original in zip(functions, originals):
        function.__code__ = _copied(original, copies)
    run: dict[int, types.CodeType] = {}
    for call in calls:
        call()
        run.update((key, original) for key, (original, copy) in copies.items() if key not in run and _has_run(copy))
    _fill_holes()
    gathered: dict[int, types.CodeType] = {}
    for original in run.values():
        _gathered(original, run, gathered)
    for function, original in zip(functions, originals):
        function.__code__ = gathered.get(id(original), original)


def _copied(code: types.CodeType, copies: dict[int, tuple[types.CodeType, types.CodeType]]) -> types.CodeType:
    """Returns the copy of some code. The copies also hold the originals, so that no other object
    gets their identity."""
    if id(code) not in copies:
        constants = tuple(_copied(each, copies) if isinstance(each, types.CodeType) else each for each in code.co_consts)
        copies[id(code)] = (code, code.replace(co_consts=constants))
    return copies[id(code)][1]


def _gathered(code: types.CodeType, run: dict[int, types.CodeType], gathered: dict[int, types.CodeType]) -> types.CodeType:
    """Returns the copy of some code if it has run, or else the code itself."""
    if id(code) not in run:
        return code
    if id(code) not in gathered:
        constants = tuple(
            _gathered(each, run, gathered) if isinstance(each, types.CodeType) else each for each in code.co_consts
        )
        gathered[id(code)] = code.replace(co_consts=constants)
    return gathered[id(code)]


def _has_run(code: types.CodeType) -> bool:
    # CPython writes this near the start of code when it runs first.
    return _opcodes["RESUME_CHECK"] in code._co_code_adaptive[:24:2]  # type: ignore[attr-defined]


def _fill_holes() -> None:
    """Allocates all free memory between objects, so that what is allocated later is adjacent.

    The allocator uses the free block that fits best. After the imports of a plugin, free blocks are
    on most pages.
    """
    global _filled
    for size in _block_sizes():
        length = size - _BLOCK_HEADER - _BYTES_HEADER
        adjacent = last = 0
        while adjacent < _ADJACENT_MIN and _filled < len(_fillers):
            filler = bytes(length) if length > 1 else object()
            _fillers[_filled] = filler
            _filled += 1
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
    _keep_list(_OBJECTS, [len(types_), len(others), *types_, *others])


def _list_constants() -> None:
    """Keeps a list of the instructions that load constants which were mortal when they ran first: the
    magic bytes, the number of instructions, their opcode and that for immortal constants, and their
    addresses, in the form of the list of objects.

    They change the counts of constants without a look at them, so they would write to the pages of
    immortal objects, too.
    """
    mortal, immortal = _opcodes["LOAD_CONST_MORTAL"], _opcodes["LOAD_CONST_IMMORTAL"]
    sizes = _sizes()
    seen: set[int] = set()
    found: list[int] = []
    waiting: list[Any] = [each.__code__ for each in gc.get_objects() if isinstance(each, types.FunctionType)]
    while waiting:
        code = waiting.pop()
        if id(code) in seen:
            continue
        seen.add(id(code))
        waiting.extend(each for each in code.co_consts if isinstance(each, types.CodeType))
        instructions = code._co_code_adaptive
        first = id(code) + types.CodeType.__basicsize__
        at = 0
        while at < len(instructions):
            if instructions[at] == mortal:
                found.append(first + at)
            at += sizes.get(instructions[at], 2)
    _keep_list(_CONSTANTS, [len(found), mortal, immortal, *found])


def _sizes() -> dict[int, int]:
    """Returns the bytes of instructions that have more than 2, by their opcodes."""
    sizes = {}
    for name, entries in opcode._inline_cache_entries.items():  # type: ignore[attr-defined]
        for each in (name, *opcode._specializations.get(name, ())):  # type: ignore[attr-defined]
            sizes[_opcodes[each]] = 2 * (1 + entries)
    return sizes


def _keep_list(magic: bytes, numbers: list[int]) -> None:
    # With its final size, because a smaller buffer would leave a copy behind.
    made = bytearray(len(magic) + 4 * len(numbers))
    struct.pack_into(f"<{len(numbers)}I", made, len(magic), *numbers)
    for index, byte in enumerate(reversed(magic)):
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
