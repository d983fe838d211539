"""Calls from asyncio."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from ._connection import Connection
from ._requests import Handlers, answer, encode_exception
from ._wire import Message, encode

# Calls of one event loop that are in progress; further ones wait. A host refuses more than 1024,
# and those of threads count too.
CALLS_MAX = 1000


async def call(connection: Connection, message: Message, handlers: Handlers) -> Message:
    """Makes a call and returns its `result` message. Cancels the call if the task is canceled."""
    # A function of the program may hold up the calls in progress until a call of its own has ended.
    if connection.is_answering():
        return await _Call(connection, message, handlers).run()
    loop = asyncio.get_running_loop()
    turns = connection.turns.get(loop)
    if turns is None:
        turns = connection.turns[loop] = asyncio.Semaphore(CALLS_MAX)
    async with turns:
        return await _Call(connection, message, handlers).run()


class _Call:
    """A call, whose messages are handled on the loop and in the context of its task."""

    def __init__(self, connection: Connection, message: Message, handlers: Handlers) -> None:
        self._connection = connection
        self._message = message
        self._handlers = handlers
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._done: asyncio.Future[Message] = self._loop.create_future()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._writing: asyncio.Future[None] | None = None

    async def run(self) -> Message:
        number = self._message["id"] = self._connection.next_number()
        line = self._connection.encode(self._message)
        self._connection.open_call(number, self._deliver)
        self._connection.read_apart()
        try:
            if not self._connection.try_write(line):
                write = self._connection.write
                self._writing = self._loop.run_in_executor(None, write, line)
                await asyncio.shield(self._writing)
            return await self._done
        except BaseException:
            self._cancel(number)
            raise
        finally:
            tasks, self._tasks = self._tasks, {}
            for task in tasks.values():
                task.cancel()

    def _cancel(self, number: int) -> None:
        """Cancels the call after its message has been written."""
        if self._writing is None or self._writing.done():
            self._connection.cancel_call(number)
        else:
            self._writing.add_done_callback(lambda _: self._connection.cancel_call(number))

    def _deliver(self, event: Message | None) -> None:
        """Passes a message to the loop, from the thread that reads."""
        try:
            self._loop.call_soon_threadsafe(self._handle, event, context=self._context)
        except RuntimeError:
            pass  # The loop is closed, and nothing waits on it.

    def _handle(self, event: Message | None) -> None:
        if self._done.done():
            return
        if event is None:
            self._done.set_exception(self._connection.exit_error())
            return
        kind = event["type"]
        if kind == "result":
            self._done.set_result(event)
        elif kind in ("progress", "log"):
            self._report(event)
        elif kind == "revoke":
            task = self._tasks.pop(event["id"], None)
            if task is not None:
                task.cancel()
        else:
            self._tasks[event["id"]] = self._loop.create_task(self._serve(event))

    def _report(self, event: Message) -> None:
        try:
            self._handlers.report(self._message["tool"], event)
        except Exception as error:
            self._done.set_exception(error)

    async def _serve(self, request: Message) -> None:
        try:
            line = encode(answer(request, await self._run(request)))
        except asyncio.CancelledError as error:
            # The function may have awaited something that was cancelled, and not be revoked.
            if self._tasks.get(request["id"]) is not asyncio.current_task():
                raise
            line = encode_exception(request, error)
        except Exception as error:
            line = encode_exception(request, error)
        if self._connection.close_request(request["id"]) and not self._connection.try_write(line):
            await asyncio.to_thread(self._connection.write, line)
        self._tasks.pop(request["id"], None)

    async def _run(self, request: Message) -> Any:
        if self._handlers.is_async(request):
            return await self._handlers.run(request)
        value = await asyncio.to_thread(self._handlers.run, request)
        return await value if hasattr(value, "__await__") else value
