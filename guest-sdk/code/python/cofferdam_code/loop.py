"""The event loop of a program.

Nothing happens outside the loop except calls of tools, so it waits for these when no task can run.
Timers only order tasks: they are due when no task can run and no call is running.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable
from typing import Any

from cofferdam_code import clock

_ROUNDS_MAX = 1000
"""Number of rounds after which the loop waits for a call or a timer although tasks can run, because
a program may poll with `asyncio.sleep(0)`."""

_Future, _Task = asyncio.Future, asyncio.Task
_copy_context = contextvars.copy_context
_iscoroutine = asyncio.iscoroutine
_swap_current_task: Any = getattr(asyncio.tasks, "_swap_current_task", None)


class Deadlock(RuntimeError):
    """The program waits for something that cannot happen."""


class Handle:
    """A callback that is scheduled."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when")

    def __init__(self, when: float, callback: Any, args: Any, context: contextvars.Context | None) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._context = context
        self._cancelled = False

    def cancel(self) -> None:
        """Cancels the callback."""
        self._cancelled = True
        self._callback = self._args = None

    def cancelled(self) -> bool:
        """Returns whether the callback was canceled."""
        return self._cancelled

    def when(self) -> float:
        """Returns the time at which the callback is due."""
        return self._when


class Loop(asyncio.AbstractEventLoop):
    """An event loop that waits for calls of tools."""

    def __init__(self, settle: Callable[[], bool]) -> None:
        """Creates a loop.

        Args:
            settle: Waits for calls and settles their futures. Returns false if no call is running.
        """
        self._settle = settle
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._number = 0
        self._factory: Any = None
        self.tasks = 0
        """Number of tasks that were created."""
        self.running_calls = 0
        """Number of calls that are running."""

    # Called by tasks, futures and `asyncio`.

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        handle = Handle(0.0, callback, args, context if context is not None else _copy_context())
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        return self.call_at(clock.waited() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        handle = Handle(when, callback, args, context if context is not None else _copy_context())
        self._number += 1
        heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def time(self) -> float:
        return clock.waited()

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None, **options: Any) -> Any:
        """Creates a task of a coroutine, or of any other awaitable, such as a call of a tool."""
        if not _iscoroutine(coro) and hasattr(type(coro), "__await__"):
            coro = _awaited(coro)
        self.tasks += 1
        if self._factory is not None:
            return self._factory(self, coro, context=context, **options)
        if name is not None:
            options["name"] = name
        return _Task(coro, loop=self, context=context, **options)

    def set_task_factory(self, factory: Any) -> None:
        self._factory = factory

    def get_task_factory(self) -> Any:
        return self._factory

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Runs a function at once, because there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        pass

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass

    async def shutdown_asyncgens(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: Any = None) -> None:
        pass

    def call_exception_handler(self, context: Any) -> None:
        pass

    default_exception_handler = call_exception_handler

    def set_exception_handler(self, handler: Any) -> None:
        pass

    def get_exception_handler(self) -> Any:
        return None

    def _timer_handle_cancelled(self, handle: Any) -> None:
        pass

    # Called by the interpreter, and by programs that use `asyncio.run`.

    def run_until_complete(self, future: Any) -> Any:
        """Runs tasks until a future is done, also inside a task. Returns its result."""
        task = future if asyncio.isfuture(future) else self.create_task(future)
        outer = _set_current_task(self, None)
        try:
            _pump(self, task)
        finally:
            _set_current_task(self, outer)
        return task.result()

    def run_forever(self) -> None:
        """Runs tasks until none is left."""
        outer = _set_current_task(self, None)
        try:
            _pump(self, self.create_future())
        except Deadlock:
            pass
        finally:
            _set_current_task(self, outer)


def _pump(loop: Loop, future: asyncio.Future[Any]) -> None:
    """Runs tasks until a future is done.

    Raises:
        Deadlock: If it can never be done.
    """
    ready, rounds = loop._ready, 0
    while not future.done():
        rounds += 1
        if ready and rounds < _ROUNDS_MAX:
            for _ in range(len(ready)):
                # A callback may run other callbacks with `asyncio.run`.
                if ready:
                    _call(ready.popleft())
            continue
        rounds = 0
        if loop._settle() or _next_timer(loop) or ready:
            continue
        raise Deadlock("the program waits for something that can never happen: no call is running and no task can run")


def _call(handle: Handle) -> None:
    if handle._cancelled:
        return
    assert handle._context is not None
    handle._context.run(handle._callback, *handle._args)


def _next_timer(loop: Loop) -> bool:
    while loop._timers:
        when, _, handle = heapq.heappop(loop._timers)
        if not handle._cancelled:
            clock.advance(when)
            loop._ready.append(handle)
            return True
    return False


def _set_current_task(loop: Loop, task: Any) -> Any:
    """Replaces the current task, and returns the previous one."""
    if _swap_current_task is not None:
        return _swap_current_task(loop, task)
    outer = asyncio.current_task(loop)
    if outer is not None:
        asyncio.tasks._leave_task(loop, outer)
    if task is not None:
        asyncio.tasks._enter_task(loop, task)
    return outer


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def install() -> None:
    """Lets programs call `asyncio.run`, which refuses to run inside a loop otherwise."""

    def run(main: Any, *, debug: Any = None, loop_factory: Any = None) -> Any:
        """Runs a coroutine and returns its result."""
        return events.get_running_loop().run_until_complete(main)

    asyncio.run = asyncio.runners.run = run
    asyncio.new_event_loop = events.new_event_loop = events.get_running_loop
    asyncio.set_event_loop = events.set_event_loop = lambda loop: None
