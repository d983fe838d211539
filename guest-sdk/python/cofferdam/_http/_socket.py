"""A socket that carries HTTP/1.1 over `wasi:http`, for libraries that speak HTTP themselves.

They write requests and read responses as over a connection of their own. Each socket carries one
request, and the response says `Connection: close`.
"""

from __future__ import annotations

import errno
import io
import socket
from typing import Any

from cofferdam._http._errors import ConnectTimeout
from cofferdam._http._exchange import Exchange
from cofferdam._http._wire import RequestHead, RequestParser, response_head

_PORTS = {"http": 80, "https": 443}


class HttpSocket:
    """Stands in for a connected `socket.socket`."""

    scheme = "http"
    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, host: str, port: int, timeout: Any = None) -> None:
        """Creates a socket. The host connects once the head of a request is complete.

        Args:
            host: Name or address of the server.
            port: Port of the server.
            timeout: Seconds for each operation, `None` for no limit, or the default value of
                `socket.create_connection`.
        """
        self.host, self.port = host, port
        self._timeout: float | None = timeout if _is_timeout(timeout) else socket.getdefaulttimeout()
        self._request = RequestParser()
        self._exchange: Exchange | None = None
        self._head: bytes | None = None
        self._waited = 0.0
        self._files = 0
        self._closed = False

    @property
    def authority(self) -> str:
        """Host and port, as in a URL."""
        host = self.host if self.host.isascii() else self.host.encode("idna").decode("ascii")
        host = f"[{host}]" if ":" in host else host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def has_response(self) -> bool:
        """Returns whether the head of the response has arrived."""
        return self._head is not None

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Sends data. When the head of a request is complete, the request begins.

        Raises:
            TimeoutError: If the server accepts no more data in time.
            OSError: If the request fails or is refused.
        """
        if self._closed:
            raise OSError(errno.EBADF, "the socket is closed")
        if self._request.is_complete:
            raise BrokenPipeError(errno.EPIPE, "the connection carries one request, which is complete")
        for part in self._request.feed(memoryview(data).cast("B")):
            if isinstance(part, RequestHead):
                self._exchange = Exchange(self.scheme, self.authority, part, self._timeout)
            elif self._exchange is not None:
                self._exchange.write(part, self._timeout)
        if self._request.is_complete and self._exchange is not None:
            self._exchange.finish()

    def send(self, data: Any, flags: int = 0) -> int:
        """Sends all of `data` and returns its size; see `sendall`."""
        self.sendall(data, flags)
        return memoryview(data).nbytes

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Returns at most `size` bytes of the response, and none at its end.

        Raises:
            TimeoutError: If none arrives in time.
            OSError: If the request fails or is refused.
        """
        if self._exchange is None:
            return b""
        if self._head is None:
            self._head = self._receive_head(self._exchange)
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._exchange.read(size, self._timeout)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Reads into a buffer and returns the number of bytes; see `recv`."""
        view = memoryview(buffer).cast("B")
        data = self.recv(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def await_response(self) -> None:
        """Waits for the head of the response, so that an error of the connection is raised here. A
        timeout, and a connection that ends early, are errors of reading the response.

        Raises:
            OSError: If the request is refused or there is no connection.
        """
        if self._exchange is None or self._head is not None:
            return
        try:
            self._head = self._receive_head(self._exchange)
        except (ConnectionResetError, TimeoutError) as error:
            if isinstance(error, ConnectTimeout):
                raise
            self._waited = self._timeout or 0.0

    def _receive_head(self, exchange: Exchange) -> bytes:
        timeout = self._timeout
        if timeout is not None:
            timeout = max(0.0, timeout - self._waited)
        return response_head(*exchange.head(timeout))

    def makefile(self, mode: str = "r", buffering: int = -1) -> io.BufferedReader:
        """Returns a file of the response, as `socket.socket.makefile` does.

        Raises:
            ValueError: If the mode is not `rb`.
        """
        if mode != "rb":
            raise ValueError(f"the mode of a file of this socket is `rb`, not `{mode}`")
        self._files += 1
        return io.BufferedReader(_SocketFile(self), buffering if buffering > 0 else io.DEFAULT_BUFFER_SIZE)

    def close(self) -> None:
        """Closes the socket. Its files stay open, as those of a `socket.socket` do."""
        self._closed = True
        self._release()

    def close_file(self) -> None:
        """Counts one of its files as closed."""
        self._files -= 1
        self._release()

    def _release(self) -> None:
        if self._closed and self._files <= 0 and self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    def shutdown(self, how: int) -> None:
        """Does nothing: the response ends the connection."""

    def settimeout(self, timeout: float | None) -> None:
        """Sets the timeout of each operation in seconds."""
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Returns the timeout of each operation in seconds."""
        return self._timeout

    def setsockopt(self, *_: Any) -> None:
        """Ignores an option, since the connection is the host's."""

    def fileno(self) -> int:
        """Returns -1, since there is no file descriptor."""
        return -1

    def getpeername(self) -> tuple[str, int]:
        """Returns host and port of the server as they were given."""
        return self.host, self.port

    def __enter__(self) -> HttpSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _SocketFile(io.RawIOBase):
    """File of a socket's response."""

    def __init__(self, connection: HttpSocket) -> None:
        self._socket: HttpSocket | None = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._socket is None:
            raise ValueError("I/O operation on closed file.")
        return self._socket.recv_into(buffer)

    def close(self) -> None:
        connection, self._socket = self._socket, None
        super().close()
        if connection is not None:
            connection.close_file()


def _is_timeout(value: Any) -> bool:
    return value is None or isinstance(value, (int, float))
