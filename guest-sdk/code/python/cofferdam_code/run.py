"""Runs one program."""

from __future__ import annotations

import asyncio
import builtins
import gc
import os
import sys
import types
from asyncio import events
from typing import Any

from cofferdam import JsonText, ToolFailure
from cofferdam_code import clock, loop, report, result
from cofferdam_code.output import Output
from cofferdam_code.program import CODE_BYTES_MAX, MAIN, RESULT, Rejected, compiled
from cofferdam_code.tools import Calls, Catalog, ToolError, Tools, helpers

_RANDOM = ("random", "uuid", "secrets", "urandom")
"""Words in programs that use random numbers."""
_SHOWN_MAX = 5
_AWAITS_MAX = 16

_Task, _isfuture, _all_tasks = asyncio.Task, asyncio.isfuture, asyncio.all_tasks
_Coroutine = types.CoroutineType
_set_running_loop = events._set_running_loop

_builtins = types.ModuleType("builtins")
_builtins.__dict__.update(builtins.__dict__)
_builtins.__dict__["ToolError"] = ToolError
_main = types.ModuleType("__main__")


def install() -> None:
    """Gives programs builtins of their own, so that they cannot replace those of this package."""
    sys.modules["builtins"] = _builtins
    sys.modules["__main__"] = _main
    loop.install()
    set_limit = sys.setrecursionlimit
    # CPython frees a longer chain of frames by a recursion that ends in a trap.
    sys.setrecursionlimit = lambda limit: set_limit(min(limit, _RECURSION_MAX))
    # These would end the interpreter instead of the program.
    os._exit = os.abort = _exit


_RECURSION_MAX = 3000


def _exit(status: int = 1) -> None:
    raise SystemExit(status)


class NotAwaited(Exception):
    """The program has ended before its calls."""


def program(code: str, catalog: str, seed: str, now: int | None, host: Any) -> JsonText:
    """Runs a program and returns its result and output as JSON.

    Args:
        code: The program.
        catalog: JSON text with the callable tools.
        seed: Decimal number that seeds random numbers.
        now: Milliseconds since 1970, or `None` for the time of the host.
        host: The functions `start_json` and `wait_any` of `cofferdam.tool_calls`.

    Raises:
        ToolFailure: If the program fails.
    """
    tools: list[Catalog] = []

    def read_catalog() -> Catalog:
        # Most of it is never needed.
        if not tools:
            tools.append(Catalog(catalog))
        return tools[0]

    try:
        checked = compiled(_checked_size(code), read_catalog)
    except Rejected as rejected:
        raise report.problems(rejected.problems, code) from None
    except SyntaxError as error:
        raise report.failure(report.syntax_error(error, code)) from None
    except ToolFailure:
        raise
    except Exception as error:
        # A null character in the program, or nesting that is too deep for the parser.
        described = report.Described("SyntaxError", f"the program cannot be parsed: {error or 'it is nested too deeply'}", None)
        raise report.failure(described) from None
    clock.start(now, seed, any(word in code for word in _RANDOM))
    return _Run(code, Calls(host), read_catalog).run(checked)


def _checked_size(code: str) -> str:
    size = len(code.encode("utf-8", "replace"))
    if size > CODE_BYTES_MAX:
        message = f"the program has {size} bytes, and at most {CODE_BYTES_MAX} are allowed; do not copy data into it"
        raise report.failure(report.Described("ProgramTooLarge", message, None))
    return code


class _Run:
    def __init__(self, code: str, calls: Calls, catalog: Any) -> None:
        self._code = code
        self._calls = calls
        self._output = Output()
        self._catalog = catalog

    def run(self, checked: Any) -> JsonText:
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self._output
        _set_running_loop(self._calls.loop)
        try:
            value = self._value(checked)
            self._finish()
            text = result.encode(value)
            return JsonText(self._success(text))
        except SystemExit as error:
            if error.code in (None, 0):
                return JsonText(self._success("null"))
            failed = self._failed(error)
        except BaseException as error:
            failed = self._failed(error)
        finally:
            _set_running_loop(None)
            sys.stdout, sys.stderr = before
        raise failed

    def _success(self, text: str) -> str:
        logs = self._output.logs()
        return f'{{"result": {text}, "logs": {result.plain(logs)}}}' if logs else f'{{"result": {text}}}'

    def _failed(self, error: BaseException) -> ToolFailure:
        logs = self._output.logs()
        try:
            described = report.exception(error, self._code)
        except BaseException as second:
            described = report.Described(type(error).__name__, f"the error cannot be shown ({type(second).__name__})", None)
        if isinstance(error, MemoryError):
            # What the program holds must be gone before the failure is written.
            _main.__dict__.clear()
            gc.collect()
        return report.failure(described, logs)

    def _value(self, checked: Any) -> Any:
        namespace = _main.__dict__
        namespace.clear()
        namespace.update(
            __name__="__main__",
            __builtins__=_builtins.__dict__,
            ToolError=ToolError,
            **helpers(self._calls),
        )
        if "tools" in self._code:
            namespace["tools"] = Tools(self._calls, self._catalog())
        value = eval(checked.code, namespace)  # noqa: S307
        if checked.is_function:
            value = namespace[MAIN]()
        if isinstance(value, _Coroutine):
            value = self._calls.loop.run_until_complete(value)
        if not checked.is_function:
            value = namespace.get(RESULT)
        for _ in range(_AWAITS_MAX):
            # The last expression may be a call that is not awaited.
            if not (_isfuture(value) or isinstance(value, _Coroutine)):
                break
            value = self._calls.loop.run_until_complete(value)
        return value

    def _finish(self) -> None:
        """Waits for calls that the program waits for, such as the others of a `gather` that has
        failed.

        Raises:
            NotAwaited: If the program has started others and does not wait for them.
        """
        calls, tasks = self._calls.running, self._calls.loop.tasks
        dropped = [f"{tool} (line {line})" for future, tool, line in calls.values() if _is_dropped(future)]
        if not dropped and tasks:
            dropped = [_task(each) for each in _all_tasks(self._calls.loop) if _is_dropped(each)]
        if dropped:
            shown = ", ".join(dropped[:_SHOWN_MAX])
            more = f" and {len(dropped) - _SHOWN_MAX} more" if len(dropped) > _SHOWN_MAX else ""
            raise NotAwaited(f"not awaited: {shown}{more}; write `await` before the call, or `await asyncio.gather(*calls)`")
        if calls:
            self._calls.loop.run_until_complete(self._calls.drained())


def _is_dropped(future: Any) -> bool:
    """Returns whether no code waits for a future that is not done."""
    if future.done() or future._callbacks:
        return False
    return not (isinstance(future, _Task) and future.cancelling())


def _task(task: Any) -> str:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", "task")
    frame = getattr(coroutine, "cr_frame", None)
    return f"{name} (line {frame.f_lineno})" if frame is not None else str(name)
