"""Calls that block their thread."""

from __future__ import annotations

import sys
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from ._requests import Handlers, answer, encode_exception
from ._wire import Message, encode

if TYPE_CHECKING:
    from ._connection import Connection
    from ._process import Inbox, ProcessConnection


def call(connection: ProcessConnection, message: Message, handlers: Handlers) -> Message:
    """Makes a call and returns its `result` message.

    The requests and the progress of the call are handled in this thread, one after the other.
    """
    inbox: Inbox = SimpleQueue()
    number = message["id"] = connection.next_number()
    line = connection.encode(message)
    connection.open_call(number, inbox.put)
    try:
        connection.write(line)
        result = connection.read_result(number, inbox)
        if result is not None:
            return result
        while True:
            event = inbox.get()
            if event is None:
                raise connection.exit_error()
            kind = event["type"]
            if kind == "result":
                return event
            if kind in ("progress", "log"):
                handlers.report(message["tool"], event)
            elif kind != "revoke":
                serve(connection, event, handlers)
    except BaseException:
        connection.stop_reading(inbox)
        connection.cancel_call(number)
        raise


def serve(connection: Connection, request: Message, handlers: Handlers) -> None:
    """Answers a request of the host."""
    line = encode_answer(request, handlers)
    if connection.close_request(request["id"]):
        connection.write(line)


def encode_answer(request: Message, handlers: Handlers) -> bytes:
    """Returns the line that answers a request of the host."""
    try:
        value = handlers.run(request)
        if hasattr(value, "__await__"):
            value = _wait_for(value)
        return encode(answer(request, value))
    except Exception as error:
        return encode_exception(request, error)
    except BaseException as error:
        # The function may have awaited something that was cancelled, which ends its call only.
        asyncio = sys.modules.get("asyncio")
        if asyncio is None or not isinstance(error, asyncio.CancelledError):
            raise
        return encode_exception(request, error)


def _wait_for(awaitable: Any) -> Any:
    """Returns the result of an awaitable, which runs on a loop of its own."""
    import asyncio

    async def wait() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    # A blocking call on the thread of a loop: this thread cannot run another loop.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wait()).result()
