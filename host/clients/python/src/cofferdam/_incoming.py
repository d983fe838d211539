"""Messages from a process, which one thread at a time reads.

The thread of the connection reads them. A call that blocks its thread reads its result itself if
that is the next message, which spares two switches between threads: after such calls, the thread
of the connection pauses.

An exception of a signal handler loses no message. One function in C reads data and stores it, and
the data stays there until the call has decoded its whole result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from ._wire import Message, decode

_CHUNK_BYTES_MAX = 65536
# The pause ends when no call that blocks its thread was made for this time.
_PAUSE_SECONDS = 0.01


class Incoming:
    """Messages from a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._reads = iter(partial(os.read, descriptor, _CHUNK_BYTES_MAX), b"")
        # Data that is not decoded yet. Only the last item can have the end of a line.
        self._chunks: list[bytes] = []
        # Has the object that may read. One function in C sets or clears it, so that a signal
        # handler runs before or after.
        self._holder: dict[str, object] = {}
        self._continues = threading.Event()
        self._is_paused = False
        self._has_waiting_call = False

    def messages(self, is_idle: Callable[[], bool]) -> Iterator[Message]:
        """Returns the messages, for the thread of the connection.

        Args:
            is_idle: returns true if no call waits for messages.
        """
        self._acquire(self)
        while self._receive_line():
            *lines, rest = b"".join(self._chunks).split(b"\n")
            self._chunks[:] = [rest] if rest else []
            yield from map(decode, lines)
            if self._has_waiting_call and not rest and is_idle():
                self._has_waiting_call = False
                self._pause(is_idle)

    def start_reading(self, holder: object) -> bool:
        """Returns true if the holder may read, until it calls `stop_reading`."""
        if self._acquire(holder):
            return True
        self._has_waiting_call = True
        return False

    def read_result(self, number: int) -> Message | None:
        """Returns the result of a call if it is the next message.

        Returns `None` if the thread of the connection has to read what comes next.
        """
        if not self._receive_line():
            return None
        data = b"".join(self._chunks)
        if data.find(b"\n") != len(data) - 1:
            return None
        try:
            message = decode(data[:-1])
        except ValueError:
            return None  # The thread of the connection reports it.
        if message.get("type") != "result" or message.get("id") != number:
            return None
        self._chunks.clear()
        return message

    def stop_reading(self, holder: object, is_idle: Callable[[], bool]) -> None:
        """Lets other threads read, if the holder may read."""
        if self._holder.get("holder") is holder:
            self._holder.clear()
            if self._chunks or not is_idle():
                self._continues.set()

    def end_pause(self) -> None:
        """Makes the thread of the connection read."""
        if self._is_paused:
            self._continues.set()

    def _pause(self, is_idle: Callable[[], bool]) -> None:
        self._continues.clear()
        self._is_paused = True
        self._holder.clear()
        # A call that began before the pause has not ended it.
        waits = is_idle()
        while True:
            if waits:
                self._continues.wait(_PAUSE_SECONDS)
            self._continues.clear()
            if self._acquire(self):
                break
            waits = True
        self._is_paused = False

    def _acquire(self, holder: object) -> bool:
        return self._holder.setdefault("holder", holder) is holder

    def _receive_line(self) -> bool:
        """Reads until there is the end of a line. Returns false at the end of the data."""
        chunks = self._chunks
        while not (chunks and b"\n" in chunks[-1]):
            count = len(chunks)
            chunks.extend(islice(self._reads, 1))
            if len(chunks) == count:
                return False
        return True
