"""Failures of a run, for the model: type, message, position in the program, and the line of its text."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

from cofferdam import JsonText, ToolFailure
from cofferdam_code import result
from cofferdam_code.tools import FILENAME, ToolError

_MESSAGE_MAX = 4000
_SOURCE_MAX = 200
_CALLERS_MAX = 4
_PROBLEMS_MAX = 10
_suggestion_for: Any = getattr(traceback, "_compute_suggestion_error", None)


class Position:
    """A position in the program."""

    def __init__(self, code: str, line: int, offset: int | None) -> None:
        """Creates a position.

        Args:
            code: The text of the program.
            line: Number of the line.
            offset: Offset in the bytes of the line.
        """
        lines = code.splitlines() if len(code) < 1_000_000 else []
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        self.line = line
        self.column = None if offset is None else len(text.encode("utf-8", "replace")[:offset].decode("utf-8", "ignore")) + 1
        shown = text.rstrip()
        self.source = shown if len(shown) <= _SOURCE_MAX else shown[:_SOURCE_MAX] + "…"

    def __str__(self) -> str:
        return f"line {self.line}" if self.column is None else f"line {self.line}, column {self.column}"

    def shown(self) -> str:
        """Returns the line with its number."""
        return f"  {self.line} | {self.source}"


class Described:
    """An error, in the parts that the model sees."""

    def __init__(self, type: str, message: str, position: Position | None, **more: Any) -> None:
        self.type = type
        self.message = _short(message)
        self.position = position
        self.callers: list[Position] = []
        self.more = {name: value for name, value in more.items() if value not in (None, "")}

    def value(self) -> dict[str, Any]:
        """Returns the error as a JSON value."""
        value: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.position is not None:
            value |= {"line": self.position.line, "column": self.position.column, "source": self.position.source}
        return value | self.more

    def text(self) -> str:
        """Returns the error as text. The first line is complete in itself."""
        tool = f" of `{self.more['tool']}`" if "tool" in self.more else ""
        message = f": {self.message}" if self.message else ""
        if self.position is None:
            lines = [f"{self.type}{tool}{message}"]
        else:
            first, _, rest = message.partition("\n")
            lines = [f"{self.type}{tool}{first} ({self.position})"]
            if rest:
                lines.append(rest)
            lines.append(self.position.shown())
        lines += [f"called from {each}\n{each.shown()}" for each in self.callers]
        if "suggestion" in self.more:
            lines.append(f"suggestion: {self.more['suggestion']}")
        return "\n".join(lines)


def failure(described: Described, logs: str = "") -> ToolFailure:
    """Returns the failure of a run, with what the program has printed."""
    value: dict[str, Any] = {"error": described.value()}
    if logs:
        value["logs"] = logs
    return ToolFailure(described.text(), transient=False, value=JsonText(result.plain(value)))


def problems(found: list[Any], code: str) -> ToolFailure:
    """Returns the failure of a program that checks have rejected, so that nothing has run."""
    located = [(each.message, Position(code, each.line, each.offset)) for each in found[:_PROBLEMS_MAX]]
    lines = [f"{message} ({position})" for message, position in located]
    if len(located) == 1:
        lines.append(located[0][1].shown())
    if len(found) > _PROBLEMS_MAX:
        lines.append(f"{len(found) - _PROBLEMS_MAX} more problems")
    text = "not run: " + "\n".join(lines)
    value = Described("CheckError", text, located[0][1]).value()
    return ToolFailure(text, transient=False, value=JsonText(result.plain({"error": value})))


def syntax_error(error: SyntaxError, code: str) -> Described:
    """Describes the error of the parser or compiler."""
    position = None
    if error.lineno:
        position = Position(code, error.lineno, None)
        position.column = max(error.offset or 1, 1)
    return Described(type(error).__name__, str(error.msg), position)


def exception(error: BaseException, code: str) -> Described:
    """Describes an exception of a program, and drops what its frames hold.

    Frames that are not the program's are not shown.
    """
    error = _single(error)
    positions = [] if isinstance(error, MemoryError) else _positions(error.__traceback__)
    if isinstance(error, MemoryError):
        positions = _positions(error.__traceback__)
        _clear(error.__traceback__)
    message = _text(error)
    hint = _hint(error)
    if hint:
        message = f"{message}. Did you mean: `{hint}`?" if message else message
    more: dict[str, Any] = {}
    if isinstance(error, ToolError):
        message = _safe(error.message)
        more = {"tool": error.tool, "code": error.code, "suggestion": error.suggestion, "value": _value(error.value)}
    if isinstance(error, RecursionError):
        more["suggestion"] = "use a loop and a list as a stack instead of recursion"
    if isinstance(error, MemoryError):
        message = message or "out of memory"
        more["suggestion"] = "hold less at once: filter and aggregate while reading"
    cause = error.__cause__
    if cause is not None and not isinstance(error, ToolError):
        message += f"\ncaused by {type(cause).__name__}: {_text(cause)}"
    positions.reverse()
    made = [Position(code, line, offset) for line, offset in positions[: _CALLERS_MAX + 1]]
    described = Described(_type(error), message, made[0] if made else None, **more)
    described.callers = made[1:]
    _clear(error.__traceback__)
    return described


def _single(error: BaseException) -> BaseException:
    """Returns the only exception of a group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _type(error: BaseException) -> str:
    return _safe(type(error).__name__) or "Exception"


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        inner = "\n".join(f"- {type(each).__name__}: {_text(each)}" for each in error.exceptions[:_PROBLEMS_MAX])
        return f"{_safe(error.message)} ({len(error.exceptions)} errors)\n{inner}"
    if isinstance(error, SystemExit):
        return f"the program called `exit` with {_safe(error.code)}"
    text = _safe(error)
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        text = "\n".join([text, *map(_safe, notes[:5])])
    return text


def _safe(value: Any) -> str:
    """Returns the text of a value that a program has made."""
    try:
        return _short(str(value))
    except Exception:
        return "(its text cannot be shown)"


def _short(text: str) -> str:
    return text if len(text) <= _MESSAGE_MAX else f"{text[:_MESSAGE_MAX]}… ({len(text) - _MESSAGE_MAX} more characters)"


def _value(value: Any) -> Any:
    return value


def _hint(error: BaseException) -> str | None:
    """Returns the name that the program probably means."""
    if _suggestion_for is None or not isinstance(error, (AttributeError, NameError)):
        return None
    try:
        name = error.name
        found = _suggestion_for(error, error.__traceback__, name) if isinstance(name, str) else None
    except Exception:
        return None
    return found if isinstance(found, str) else None


def _positions(frame: TracebackType | None) -> list[tuple[int, int | None]]:
    """Returns line and offset of the frames of the program, outermost first."""
    positions: list[tuple[int, int | None]] = []
    while frame is not None:
        code = frame.tb_frame.f_code
        if code.co_filename == FILENAME:
            position = (frame.tb_lineno or 0, _offset(code, frame.tb_lasti))
            # A recursion has the same position again and again.
            if position not in positions[-2:]:
                positions.append(position)
        frame = frame.tb_next
    return positions


def _offset(code: Any, instruction: int) -> int | None:
    for index, position in enumerate(code.co_positions()):
        if index * 2 == instruction:
            offset: int | None = position[2]
            return offset
    return None


def _clear(frame: TracebackType | None) -> None:
    """Drops the variables of the frames, which may hold most of the memory."""
    while frame is not None:
        try:
            frame.tb_frame.clear()
        except RuntimeError:
            pass
        frame = frame.tb_next
