"""Connections of httpcore, the transport of httpx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore  # type: ignore[import-not-found]

from cofferdam._http import _ssl
from cofferdam._http._errors import ConnectTimeout
from cofferdam._http._socket import HttpSocket


class Stream(httpcore.NetworkStream):  # type: ignore[misc]
    """Connection of one request."""

    def __init__(self, connection: HttpSocket) -> None:
        self._socket = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Returns at most `max_bytes` bytes of the response, and none at its end."""
        self._socket.settimeout(timeout)
        with _mapped(httpcore.ReadTimeout, self._socket.has_response):
            return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Sends a part of the request."""
        if buffer:
            self._socket.settimeout(timeout)
            with _mapped(httpcore.WriteTimeout, False):
                self._socket.sendall(buffer)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Stream:
        """Returns the connection with the scheme `https`."""
        return Stream(ssl_context.wrap_socket(self._socket))

    def get_extra_info(self, info: str) -> Any:
        """Returns a detail of the connection, or `None` if there is none of this name."""
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, _ssl.SSLSocket) else None
        return self._socket if info == "socket" else None


def connect_tcp(
    backend: Any,
    host: str,
    port: int,
    timeout: float | None = None,
    local_address: str | None = None,
    socket_options: Iterable[Any] | None = None,
) -> Stream:
    """Replaces `httpcore.SyncBackend.connect_tcp`."""
    return Stream(HttpSocket(host, port, timeout))


@contextmanager
def _mapped(timed_out: type[Exception], is_connected: bool) -> Iterator[None]:
    """Raises the exceptions of httpcore. Errors of the connection are known only when the response
    is read.
    """
    try:
        yield
    except ConnectTimeout as error:
        raise httpcore.ConnectTimeout(error) from error
    except TimeoutError as error:
        raise timed_out(error) from error
    except OSError as error:
        if is_connected or isinstance(error, ConnectionResetError):
            raise httpcore.ReadError(error) from error
        raise httpcore.ConnectError(error) from error
