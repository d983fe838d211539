"""The process `cofferdam pipe` and the messages to and from it.

A thread reads what the host sends and hands each message to the call that it belongs to. It
never writes and never runs code of the program, so that the host cannot be blocked by either.
The process leads a session of its own: Ctrl-C at the terminal reaches only the program, which
cancels its call. The process ends when its standard input is closed, also by a crash of the
program.
"""

from __future__ import annotations

import atexit
import itertools
import os
import select
import subprocess
import threading
import weakref
from collections.abc import Callable

from ._errors import CofferdamError, HostExited, StartError
from ._wire import Message, decode, encode, read_lines

PROTOCOL = 1
# A write of at most this size is either complete or did not happen, even if a signal arrives.
_ATOMIC_BYTES_MAX = getattr(select, "PIPE_BUF", 512)
# A host cancels its calls when standard input ends, which takes milliseconds.
_EXIT_SECONDS_MAX = 5.0

# Receives the messages about one call, `None` if the host has ended.
Deliver = Callable[["Message | None"], None]

_live: weakref.WeakSet[Connection] = weakref.WeakSet()


class Connection:
    """A running host. All methods may be called from any thread."""

    def __init__(self, command: list[str], hello: Message, serve: Callable[[Message], None]):
        """Starts the process and waits until the host is ready.

        `serve` answers requests that belong to no call, and runs in a thread of its own.
        """
        self._serve = serve
        self._ids = itertools.count(1)
        self._calls: dict[int, Deliver] = {}
        self._requests: dict[int, Deliver] = {}
        self._write_lock = threading.Lock()
        self._is_closed = False
        self._is_forked = False
        self._has_ended = False
        self._failure: str | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise StartError(f"cannot start {command[0]!r}: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._output = self._process.stdout
        self._lines = read_lines(self._output.fileno())
        _live.add(self)
        try:
            self.ready = self._greet(hello)
        except BaseException:
            self._kill()
            raise
        self._reader = threading.Thread(target=self._read, name="cofferdam", daemon=True)
        self._reader.start()

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
            self.write(encode({"type": "cancel", "id": number}))
        except CofferdamError:
            pass  # A host that has ended runs no calls.

    def close_request(self, number: int) -> bool:
        """Returns true for the first answer to a request that has not been revoked."""
        return self._requests.pop(number, None) is not None

    def write(self, line: bytes) -> None:
        """Sends a message."""
        is_main = threading.current_thread() is threading.main_thread()
        if len(line) <= _ATOMIC_BYTES_MAX or not is_main:
            with self._write_lock:
                self._write(line)
            return
        # Signal handlers run in the main thread. An exception of one would cut the message.
        errors: list[CofferdamError] = []
        thread = threading.Thread(target=self._write_apart, args=(line, errors), daemon=True)
        thread.start()
        try:
            thread.join()
        except BaseException:
            thread.join()  # What the caller sends next, such as `cancel`, comes after this.
            raise
        if errors:
            raise errors[0]

    def try_write(self, line: bytes) -> bool:
        """Sends a message if that takes no time. Returns false if it was not sent."""
        if len(line) > _ATOMIC_BYTES_MAX or not self._write_lock.acquire(blocking=False):
            return False
        try:
            self._write(line)
        finally:
            self._write_lock.release()
        return True

    def disconnect(self) -> None:
        """Closes standard input, at whose end the host exits."""
        if self._is_forked:
            return
        # A writer that holds the lock waits for a host that does not read.
        if not self._write_lock.acquire(timeout=_EXIT_SECONDS_MAX):
            self._process.kill()
            self._write_lock.acquire()
        try:
            if not self._is_closed:
                self._is_closed = True
                self._input.close()
        finally:
            self._write_lock.release()

    def close(self) -> None:
        """Ends the host and waits for it."""
        self.disconnect()
        if self._is_forked or threading.current_thread() is self._reader:
            return
        self._reader.join(_EXIT_SECONDS_MAX)
        if self._reader.is_alive():
            self._process.kill()
            self._reader.join(_EXIT_SECONDS_MAX)

    def abandon(self) -> None:
        """Closes the pipes in a forked process, so that the host ends with its own program."""
        self._is_forked = True
        self._input.close()
        self._output.close()
        self._process.returncode = 0  # The child of another process cannot be waited for.

    def exit_error(self) -> HostExited:
        """Returns the error for calls that wait for a host that has ended."""
        code = self._process.returncode
        if self._failure is not None:
            return HostExited(self._failure, code)
        if self._is_closed:
            return HostExited("the host was closed during the call", code)
        return HostExited(f"the host ended during the call ({_describe_exit(code)})", code)

    def _greet(self, hello: Message) -> Message:
        from ._log import log_note

        self.write(encode(hello))
        for line in self._lines:
            try:
                message = decode(line)
            except ValueError as error:
                raise StartError(f"the program is not `cofferdam pipe`: {error}") from None
            kind = message.get("type")
            if kind == "ready":
                if message.get("protocol") != PROTOCOL:
                    raise StartError(
                        f"expected version {PROTOCOL} of the protocol, found "
                        f"{message.get('protocol')!r}: install matching versions"
                    )
                return message
            if kind == "failed":
                raise StartError(str(message.get("message")), message.get("exit"))
            if kind == "note":
                log_note(message)
        code = self._process.wait()
        raise StartError(
            f"the host ended before it was ready ({_describe_exit(code)}); standard error of "
            "the process may tell why",
            code,
        )

    def _read(self) -> None:
        try:
            for line in self._lines:
                self._dispatch(line)
        except (KeyError, ValueError) as error:
            self._failure = f"the host sent a line that is not a message: {error}"
            self._process.kill()
        self._process.wait()
        self._output.close()
        self._has_ended = True
        while self._calls:
            _, deliver = self._calls.popitem()
            deliver(None)

    def _dispatch(self, line: bytes) -> None:
        message = decode(line)
        kind = message.get("type")
        if kind == "result":
            deliver = self._calls.pop(message["id"], None)
        elif kind in ("progress", "log"):
            deliver = self._calls.get(message["id"])
        elif kind in ("invoke", "approve", "ask"):
            deliver = self._calls.get(message.get("call", 0), self._serve_apart)
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

    def _write(self, line: bytes) -> None:
        self._check_usable()
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._input.fileno(), view) :]
        except OSError:
            pass  # The host has ended, which the reader tells every call.

    def _write_apart(self, line: bytes, errors: list[CofferdamError]) -> None:
        try:
            with self._write_lock:
                self._write(line)
        except CofferdamError as error:
            errors.append(error)

    def _check_usable(self) -> None:
        if self._is_forked:
            raise CofferdamError(
                "this process was forked from the one that started the host: start another host"
            )
        if self._is_closed:
            raise CofferdamError("the host is closed")

    def _kill(self) -> None:
        self._is_closed = True
        self._input.close()
        self._process.kill()
        self._process.wait()
        self._output.close()
        _live.discard(self)


def _describe_exit(code: int | None) -> str:
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
