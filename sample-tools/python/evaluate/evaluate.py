"""Runs Python in the sandbox of the call."""

import ast
import contextlib
import io
import json
import linecache
import traceback
from dataclasses import dataclass
from typing import Annotated, Any

from cofferdam import ToolFailure, tool

import modules

CODE_BYTES_MAX = 65_536
"""Maximum bytes of a snippet. It is part of a model's message; longer code belongs in files."""

SHOWN_MAX = 20_000
"""Maximum characters of output, and of a value as text, because a model reads all of it."""

NAME = "<snippet>"


@dataclass
class Evaluation:
    """How a snippet ended."""

    ok: Annotated[bool, "Whether it ran to its end."]
    value: Annotated[Any, "The value of the last expression, where it has a JSON form; null otherwise."] = None
    repr: Annotated[str | None, "That value as Python writes it, or null if there is none."] = None
    stdout: Annotated[str, "What was printed."] = ""
    error: Annotated[str | None, "What went wrong, with its type."] = None
    traceback: Annotated[str | None, "Where it went wrong, in lines of the snippet."] = None


@tool(title="Run Python", read_only=True, open_world=False, output_schema=True)
def evaluate(code: str, inputs: dict[str, Any] | None = None) -> Evaluation:
    """Runs a snippet of Python 3.14 and returns what it prints and the value of its last line, if that is an expression.

    For arithmetic with all digits, dates, statistics, text processing, parsing, small simulations, SQLite in memory. There are no
    files, no network and no packages, but most of the standard library. Each call starts anew: nothing is kept. An error is
    a part of the result, with its traceback.

    Args:
        code: One or more lines of Python, such as `sum(range(10))`.
        inputs: Values by name that the snippet sees as variables: pass data here instead of writing it into the code.
    """
    if len(code.encode()) > CODE_BYTES_MAX:
        raise ToolFailure(
            f"the snippet has more than {CODE_BYTES_MAX} bytes", suggestion="pass data as `inputs`", transient=False
        )
    names = {"__name__": "__main__", "__builtins__": __builtins__, **_checked(inputs or {})}
    printed = _Printed()
    # For the lines of the snippet in tracebacks.
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            value = _run(code, names)
            shown = None if value is None else _shortened(repr(value))
    # `exit()` ends the snippet like any exception.
    except BaseException as error:
        return Evaluation(False, stdout=printed.text(), error=_words(error), traceback=_where(error))
    return Evaluation(True, _as_json(value), shown, printed.text())


def _checked(inputs: dict[str, Any]) -> dict[str, Any]:
    for name in inputs:
        if not name.isidentifier() or name.startswith("__"):
            raise ToolFailure(
                f"`{name}` cannot be the name of a variable", suggestion="use letters, digits and `_`", transient=False
            )
    return inputs


def _run(code: str, names: dict[str, Any]) -> Any:
    """Runs all statements, and returns the value of the last one if it is an expression."""
    tree = ast.parse(code, NAME)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, NAME, "exec"), names)
        return None
    tree.body.pop()
    exec(compile(tree, NAME, "exec"), names)
    return eval(compile(ast.Expression(last.value), NAME, "eval"), names)


def _as_json(value: Any) -> Any:
    """Returns the value if it has a JSON form. Otherwise the result contains only its text."""
    # JSON parsers read larger integers as doubles; the text has all digits.
    if isinstance(value, int) and abs(value) >= 2**63:
        return None
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= SHOWN_MAX else None


def _shortened(text: str) -> str:
    left_out = len(text) - SHOWN_MAX
    return text if left_out <= 0 else f"{text[:SHOWN_MAX]}… ({left_out} more characters)"


def _words(error: BaseException) -> str:
    text = ": ".join(filter(None, [type(error).__name__, str(error)]))
    if isinstance(error, ModuleNotFoundError):
        text += f"; there are {', '.join(modules.NAMES)}"
    return _shortened(text)


def _where(error: BaseException) -> str:
    """Returns the traceback from the snippet's first line."""
    start = error.__traceback__
    while start and start.tb_frame.f_code.co_filename != NAME:
        start = start.tb_next
    lines = traceback.format_exception(type(error), error, start)
    return _shortened("".join(lines))


class _Printed(io.TextIOBase):
    """Stores the beginning of the output."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._characters = 0

    def write(self, text: str) -> int:
        if self._characters <= SHOWN_MAX:
            self._pieces.append(text[: SHOWN_MAX + 1 - self._characters])
        self._characters += len(text)
        return len(text)

    def text(self) -> str:
        """Returns the stored output, with the length of the rest."""
        kept = "".join(self._pieces)[:SHOWN_MAX]
        left_out = self._characters - len(kept)
        return kept if left_out <= 0 else f"{kept}… ({left_out} more characters)"
