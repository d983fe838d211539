"""The process `cofferdam pipe`.

It leads a session of its own: Ctrl-C at the terminal reaches only the program, which cancels its
call. The process ends when its standard input is closed, also by a crash of the program.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
from queue import SimpleQueue

from . import _blocking
from ._connection import EXIT_SECONDS_MAX, PROTOCOL, Connection, Encoded, Serve
from ._errors import CofferdamError, StartError
from ._incoming import Incoming
from ._requests import Handlers
from ._wire import Message, encode

# Messages about a call that blocks its thread.
Inbox = SimpleQueue["Message | None"]

# A write of at most this size is either complete or did not happen, even if a signal arrives.
_ATOMIC_BYTES_MAX = getattr(select, "PIPE_BUF", 512)


class ProcessConnection(Connection):
    """A host in a process of its own."""

    def __init__(self, command: list[str], hello: Message, serve: Serve) -> None:
        """Starts the process and waits until the host is ready."""
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
        self._write_lock = threading.Lock()
        self._hello = hello
        self._incoming = Incoming(self._output.fileno())
        super().__init__(serve, self._incoming.messages(self._is_idle))
        self._open()

    def call(self, message: Message, handlers: Handlers) -> Message:
        return _blocking.call(self, message, handlers)

    def read_result(self, number: int, inbox: Inbox) -> Message | None:
        """Returns the result of a call if this thread can read it, else `None`.

        The inbox receives what another thread reads. After an exception, call `stop_reading`.
        """
        message = None
        # Another thread may have read the result, or a request, before.
        if self._incoming.start_reading(inbox) and number in self._calls and inbox.empty():
            message = self._incoming.read_result(number)
            if message is not None:
                self._calls.pop(number, None)
        self.stop_reading(inbox)
        return message

    def stop_reading(self, inbox: Inbox) -> None:
        """Lets other threads read, if the call of this inbox was reading."""
        self._incoming.stop_reading(inbox, self._is_idle)

    def read_apart(self) -> None:
        self._incoming.end_pause()

    def encode(self, message: Message) -> Encoded:
        return encode(message)

    def write(self, encoded: Encoded) -> None:
        assert isinstance(encoded, bytes)
        is_main = threading.current_thread() is threading.main_thread()
        if len(encoded) <= _ATOMIC_BYTES_MAX or not is_main:
            with self._write_lock:
                self._write(encoded)
            return
        # Signal handlers run in the main thread. An exception of one would cut the message.
        errors: list[CofferdamError] = []
        thread = threading.Thread(target=self._write_apart, args=(encoded, errors), daemon=True)
        thread.start()
        try:
            thread.join()
        except BaseException:
            thread.join()  # What the caller sends next, such as `cancel`, comes after this.
            raise
        if errors:
            raise errors[0]

    def try_write(self, encoded: Encoded) -> bool:
        assert isinstance(encoded, bytes)
        if len(encoded) > _ATOMIC_BYTES_MAX or not self._write_lock.acquire(blocking=False):
            return False
        try:
            self._write(encoded)
        finally:
            self._write_lock.release()
        return True

    def disconnect(self) -> None:
        """Closes standard input, at whose end the host exits."""
        if self._is_forked:
            return
        # A writer that holds the lock waits for a host that does not read.
        if not self._write_lock.acquire(timeout=EXIT_SECONDS_MAX):
            self._process.kill()
            self._write_lock.acquire()
        try:
            if not self._is_closed:
                self._is_closed = True
                self._input.close()
        finally:
            self._write_lock.release()

    def close(self) -> None:
        self.disconnect()
        if self._is_forked or threading.current_thread() is self._reader:
            return
        self._reader.join(EXIT_SECONDS_MAX)
        if self._reader.is_alive():
            self._process.kill()
            self._reader.join(EXIT_SECONDS_MAX)

    def abandon(self) -> None:
        """Closes the pipes, so that the host ends with its own program."""
        self._is_forked = True
        self._input.close()
        self._output.close()
        self._process.returncode = 0  # The child of another process cannot be waited for.

    def _is_idle(self) -> bool:
        return not self._calls

    def _open(self) -> None:
        try:
            super()._open()
        except BaseException:
            self._input.close()
            raise

    def _greet(self) -> Message:
        self.write(encode(self._hello))
        ready = super()._greet()
        if ready.get("protocol") != PROTOCOL:
            raise StartError(
                f"expected version {PROTOCOL} of the protocol, found "
                f"{ready.get('protocol')!r}: install matching versions"
            )
        return ready

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

    def _kill(self) -> None:
        self._process.kill()

    def _end(self) -> None:
        self._process.wait()
        self._output.close()

    def _exit_code(self) -> int | None:
        return self._process.returncode
