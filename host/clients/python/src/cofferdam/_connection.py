"""A running host and the messages to and from it.

A thread reads what the host sends and hands each message to the call that it belongs to. It
never writes and never runs code of the program, so that the host cannot be blocked by either. A
call that blocks its thread may read its result itself.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from ._errors import CofferdamError, HostExited, StartError
from ._requests import Handlers
from ._wire import Message

PROTOCOL = 1
# A host cancels its calls when it is closed, which takes milliseconds.
EXIT_SECONDS_MAX = 5.0

# Receives the messages about one call, `None` if the host has ended.
Deliver = Callable[["Message | None"], None]
# Answers a request that belongs to no call, in a thread of its own.
Serve = Callable[["Message"], None]
# A message in the form that a connection writes.
Encoded = bytes | Message

_live: weakref.WeakSet[Connection] = weakref.WeakSet()


class Connection(ABC):
    """A running host. All methods may be called from any thread."""

    ready: Message
    """The first message of the host."""

    def __init__(self, serve: Serve, messages: Iterator[Message]) -> None:
        self._serve = serve
        self._messages = messages
        self._ids = itertools.count(1)
        self._calls: dict[int, Deliver] = {}
        self._requests: dict[int, Deliver] = {}
        # The calls that each event loop may still start, as an `asyncio.Semaphore`.
        self.turns: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._is_closed = False
        self._is_forked = False
        self._has_ended = False
        self._failure: str | None = None
        self._reader = threading.Thread(target=self._read, name="cofferdam", daemon=True)
        _live.add(self)

    @abstractmethod
    def call(self, message: Message, handlers: Handlers) -> Message:
        """Makes a call that blocks this thread, and returns its `result` message."""

    @abstractmethod
    def encode(self, message: Message) -> Encoded:
        """Returns a message as `write` takes it."""

    @abstractmethod
    def write(self, encoded: Encoded) -> None:
        """Sends a message."""

    @abstractmethod
    def try_write(self, encoded: Encoded) -> bool:
        """Sends a message if that takes no time. Returns false if it was not sent."""

    @abstractmethod
    def read_apart(self) -> None:
        """Makes the thread of the connection read messages, if it does not."""

    @abstractmethod
    def disconnect(self) -> None:
        """Tells the host to end."""

    @abstractmethod
    def close(self) -> None:
        """Ends the host and waits for it."""

    @abstractmethod
    def abandon(self) -> None:
        """Lets go of the host in a forked process."""

    def next_number(self) -> int:
        """Returns the number of a new call."""
        return next(self._ids)

    def open_call(self, number: int, deliver: Deliver) -> None:
        """Makes `deliver` receive the messages about a call."""
        self._check_usable()
        self._calls[number] = deliver
        # The reader sets this before it takes the calls that are left.
        if self._has_ended:
            self._calls.pop(number, None)
            raise self.exit_error()

    def cancel_call(self, number: int) -> None:
        """Stops a call, of which nothing more is delivered."""
        if self._calls.pop(number, None) is None or self._is_forked:
            return
        try:
            self.write(self.encode({"type": "cancel", "id": number}))
        except CofferdamError:
            pass  # A host that has ended runs no calls.

    def close_request(self, number: int) -> bool:
        """Returns true for the first answer to a request that has not been revoked."""
        return self._requests.pop(number, None) is not None

    def is_answering(self) -> bool:
        """Returns whether the program answers a request, and may make calls to do so."""
        return bool(self._requests)

    def exit_error(self) -> HostExited:
        """Returns the error for calls that wait for a host that has ended."""
        code = self._exit_code()
        if self._failure is not None:
            return HostExited(self._failure, code)
        if self._is_closed:
            return HostExited("the host was closed during the call", code)
        return HostExited(f"the host ended during the call ({describe_exit(code)})", code)

    def _open(self) -> None:
        """Waits until the host is ready, and starts the thread that reads."""
        try:
            self.ready = self._greet()
        except BaseException:
            self._is_closed = True
            self._kill()
            self._end()
            _live.discard(self)
            raise
        self._reader.start()

    def _greet(self) -> Message:
        from ._log import log_note

        try:
            for message in self._messages:
                kind = message.get("type")
                if kind == "ready":
                    return message
                if kind == "failed":
                    raise StartError(str(message.get("message")), message.get("exit"))
                if kind == "note":
                    log_note(message)
        except ValueError as error:
            raise StartError(f"the program is not `cofferdam pipe`: {error}") from None
        self._end()
        code = self._exit_code()
        raise StartError(
            f"the host ended before it was ready ({describe_exit(code)}); standard error of "
            "the process may tell why",
            code,
        )

    def _read(self) -> None:
        try:
            for message in self._messages:
                self._dispatch(message)
        except (KeyError, ValueError) as error:
            self._failure = f"the host sent a line that is not a message: {error}"
            self._kill()
        self._end()
        self._has_ended = True
        while self._calls:
            _, deliver = self._calls.popitem()
            deliver(None)

    def _dispatch(self, message: Message) -> None:
        kind = message.get("type")
        if kind == "result":
            deliver = self._calls.pop(message["id"], None)
        elif kind in ("progress", "log"):
            deliver = self._calls.get(message["id"])
        elif kind in ("invoke", "approve", "ask"):
            # The host no longer waits for the answer to a request of a call that has ended.
            call = message.get("call")
            deliver = self._serve_apart if call is None else self._calls.get(call)
            if deliver is not None:
                self._requests[message["id"]] = deliver
        elif kind == "revoke":
            deliver = self._requests.pop(message["id"], None)
        else:
            self._note(message)
            return
        if deliver is not None:
            deliver(message)

    def _note(self, message: Message) -> None:
        from ._log import log_note

        if message.get("type") == "failed":
            self._failure = f"the host ended: {message.get('message')}"
        elif message.get("type") == "note":
            log_note(message)

    def _serve_apart(self, message: Message | None) -> None:
        if message is not None and message["type"] != "revoke":
            threading.Thread(target=self._serve, args=(message,), daemon=True).start()

    def _check_usable(self) -> None:
        if self._is_forked:
            raise CofferdamError(
                "this process was forked from the one that started the host: start another host"
            )
        if self._is_closed:
            raise CofferdamError("the host is closed")

    @abstractmethod
    def _kill(self) -> None:
        """Ends a host that has not started or breaks the protocol."""

    @abstractmethod
    def _end(self) -> None:
        """Cleans up after the last message."""

    @abstractmethod
    def _exit_code(self) -> int | None:
        """Returns the exit code of the host's process, if it has one that has ended."""


def describe_exit(code: int | None) -> str:
    """Returns an exit code in words."""
    if code is None:
        return "still running"
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _close_all() -> None:
    for connection in list(_live):
        connection.close()


def _abandon_all() -> None:
    for connection in list(_live):
        connection.abandon()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
