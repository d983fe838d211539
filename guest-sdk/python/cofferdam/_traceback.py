"""Tracebacks of the plugin's own code.

The module `traceback` parses the lines of each frame again, to underline parts of them. Its first
use costs more than the rest of a call, so it is left to the errors that need more.
"""

from __future__ import annotations

import importlib
import linecache
import os
import traceback
from collections.abc import Iterator
from types import TracebackType

_NOT_SHOWN = (os.path.dirname(__file__) + "/", "<frozen importlib", importlib.__file__)
# Three lines of a recursion are enough, as in the module `traceback`.
_REPEATED_MAX = 3
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def brief(error: BaseException, source: str) -> str:
    """Returns the traceback of an exception and of those that led to it, with one line of source
    for each frame whose lines are cached.

    Args:
        error: The exception.
        source: Directory of the plugin, with a slash at its end. Paths are relative to it.
    """
    chain = list(_chain(error))
    if any(isinstance(each, (SyntaxError, BaseExceptionGroup)) for each, _ in chain):
        return full(error, source)
    parts: list[str] = []
    for each, link in reversed(chain):
        if each.__traceback__ is not None:
            parts.append("Traceback (most recent call last):\n")
            parts += _frames(each.__traceback__, source)
        parts += [*_description(each), link]
    return "".join(parts)


def full(error: BaseException, source: str) -> str:
    """Returns the traceback that Python prints, without frames of this package and the importer.

    Args:
        error: The exception.
        source: Directory of the plugin, with a slash at its end. Paths are relative to it.
    """
    told = traceback.TracebackException.from_exception(error)
    each: traceback.TracebackException | None = told
    while each is not None:
        frames = [frame for frame in each.stack if not frame.filename.startswith(_NOT_SHOWN)]
        for frame in frames:
            frame.filename = frame.filename.removeprefix(source)
        each.stack = traceback.StackSummary.from_list(frames)
        each = each.__cause__ or each.__context__
    return "".join(told.format()).replace(f'File "{source}', 'File "')


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yields an exception and those that led to it, each with the words that lead to the one
    before it.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    link = ""
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each, link
        if each.__cause__ is not None:
            each, link = each.__cause__, _CAUSE
        else:
            each, link = (None if each.__suppress_context__ else each.__context__), _CONTEXT


def _description(error: BaseException) -> list[str]:
    if isinstance(error, (AttributeError, ImportError, NameError)):
        # With a suggestion of another name.
        return traceback.format_exception_only(error)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception:
        text = "<exception str() failed>"
    notes = getattr(error, "__notes__", ())
    return [f"{name}: {text}\n" if text else f"{name}\n", *(f"{note}\n" for note in notes)]


def _frames(frame: TracebackType | None, source: str) -> Iterator[str]:
    before, repeated = "", 0
    while frame is not None:
        code = frame.tb_frame.f_code
        if not code.co_filename.startswith(_NOT_SHOWN):
            text = f'  File "{code.co_filename.removeprefix(source)}", line {frame.tb_lineno}, in {code.co_name}\n'
            repeated = repeated + 1 if text == before else 0
            if repeated < _REPEATED_MAX:
                yield text + _line(code.co_filename, frame.tb_lineno)
            before = text
        frame = frame.tb_next


def _line(file: str, number: int) -> str:
    # The file itself does not exist when a tool runs.
    entry = linecache.cache.get(file, ())
    if len(entry) == 4 and 0 < number <= len(entry[2]):
        return f"    {entry[2][number - 1].strip()}\n"
    return ""
