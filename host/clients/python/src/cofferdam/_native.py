"""The host in this process, by the module `cofferdam_native`.

A call that blocks its thread runs on that thread. Calls of asyncio run on threads of the host,
and a thread reads their messages, as over a pipe. The program `cofferdam` compiles plugins.

The first host of a process installs handlers of the signals by which a trap ends a call. Handlers
that come later, or older ones that come back, would take a trap for a crash of the process. The
package refuses calls if `faulthandler` has done so.
"""

from __future__ import annotations

import faulthandler
import os
import threading
from typing import TYPE_CHECKING

from . import _blocking
from ._connection import EXIT_SECONDS_MAX, Connection, Encoded, Serve
from ._errors import CofferdamError, StartError
from ._requests import Handlers
from ._wire import Message, encode

if TYPE_CHECKING:
    from cofferdam_native import NativeHost

_INTERFACE = 1
# Flags that the command line reads from the environment.
_VARIABLES = {
    "cache-dir": "COFFERDAM_CACHE_DIR",
    "config": "COFFERDAM_CONFIG",
    "confinement": "COFFERDAM_CONFINEMENT",
}


# True if `faulthandler` was enabled when the first host of the process started.
_has_faulthandler: bool | None = None


class NativeConnection(Connection):
    """A host in this process."""

    def __init__(self, program: str, flags: list[str], hello: Message, serve: Serve) -> None:
        """Starts the host and waits until it is ready."""
        global _has_faulthandler
        if _has_faulthandler is None:
            _has_faulthandler = faulthandler.is_enabled()
        try:
            self._host = _start(program, flags, hello)
        except (OSError, RuntimeError) as error:
            raise StartError(str(error)) from None
        super().__init__(serve, iter(self._host.next_message, None))
        self._open()

    def call(self, message: Message, handlers: Handlers) -> Message:
        self._check_usable()
        message["id"] = next(self._ids)
        call = self._host.call(message)
        try:
            while True:
                event = call.wait()
                kind = event["type"]
                if kind == "result":
                    return event
                if kind in ("progress", "log"):
                    handlers.report(message["tool"], event)
                elif kind != "revoke":
                    self._host.reply(_blocking.encode_answer(event, handlers))
        except BaseException:
            call.cancel()
            raise

    def encode(self, message: Message) -> Encoded:
        # The host encodes calls. An answer that cannot be encoded is an error of its function.
        return message if message["type"] in ("call", "cancel") else encode(message)

    def write(self, encoded: Encoded) -> None:
        self._check_usable()
        if isinstance(encoded, bytes):
            self._host.reply(encoded)
        elif encoded["type"] == "call":
            self._host.spawn(encoded)
        else:
            self._host.cancel(encoded["id"])

    def try_write(self, encoded: Encoded) -> bool:
        self.write(encoded)
        return True

    def read_apart(self) -> None:
        pass  # The thread of the connection reads all messages.

    def disconnect(self) -> None:
        if not self._is_forked:
            self._is_closed = True
            self._host.close()

    def close(self) -> None:
        self.disconnect()
        if not self._is_forked and threading.current_thread() is not self._reader:
            self._reader.join(EXIT_SECONDS_MAX)

    def abandon(self) -> None:
        self._is_forked = True

    def _check_usable(self) -> None:
        super()._check_usable()
        if faulthandler.is_enabled() is not _has_faulthandler:
            raise CofferdamError(
                "`faulthandler` was enabled or disabled after the first host started in this "
                "process, so that a trap of a tool would end the process: do so before"
            )

    def _kill(self) -> None:
        self._host.close()

    def _end(self) -> None:
        pass

    def _exit_code(self) -> int | None:
        return None


def _start(program: str, flags: list[str], hello: Message) -> NativeHost:
    try:
        import cofferdam_native
    except ImportError as error:
        raise StartError(
            f"`in_process` needs the module `cofferdam_native` ({error}): install "
            "`cofferdam-host[native]`, or start a host without `in_process`"
        ) from error
    if cofferdam_native.INTERFACE != _INTERFACE:
        raise StartError(
            f"expected version {_INTERFACE} of the module `cofferdam_native`, found "
            f"{cofferdam_native.INTERFACE!r}: install matching versions"
        )
    values = [
        (name, value)
        for name, variable in _VARIABLES.items()
        if (value := os.environ.get(variable))
    ]
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        values.append((name, value))
    return cofferdam_native.NativeHost(encode(hello).decode(), values, program, encode)
