"""HTTP/1.1 on a connection: parses requests and writes heads of responses."""

from __future__ import annotations

import errno
import http
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD_BYTES_MAX = 256 * 1024
_CHUNK_LINE_BYTES_MAX = 4096
_REASONS = {status.value: status.phrase for status in http.HTTPStatus}
# Headers of a response that state how its body was sent over the host's connection.
_TRANSFER_HEADERS = frozenset(("connection", "keep-alive", "transfer-encoding"))


@dataclass(frozen=True)
class RequestHead:
    """Request line and headers."""

    method: str
    target: str
    headers: list[tuple[str, bytes]]
    length: int | None
    """Bytes of the body. `None` if it is sent in chunks."""

    @property
    def has_body(self) -> bool:
        """Returns whether a body follows."""
        return self.length != 0


class RequestParser:
    """Parses one request that arrives in pieces of any size."""

    def __init__(self) -> None:
        self.is_complete = False
        """True after the last byte of the request."""
        self._line = bytearray()
        self._left = 0
        self._is_chunked = False
        self._has_head = False
        self._in_trailer = False

    def feed(self, data: memoryview) -> Iterator[RequestHead | memoryview]:
        """Yields the head once it is complete, and then the parts of the body, without the framing
        of chunks.

        Raises:
            OSError: If the request is for a proxy.
            ValueError: If it is not HTTP/1.1.
        """
        if not self._has_head:
            parsed = self._head(data)
            if parsed is None:
                return
            head, data = parsed
            yield head
        while data and not self.is_complete:
            if self._left:
                part, data = data[: self._left], data[self._left :]
                self._left -= len(part)
                self.is_complete = not self._left and not self._is_chunked
                yield part
            else:
                data = self._chunk_line(data)

    def _head(self, data: memoryview) -> tuple[RequestHead, memoryview] | None:
        before = len(self._line)
        self._line += data
        end = self._line.find(b"\r\n\r\n", max(0, before - 3))
        if end < 0:
            if len(self._line) > _HEAD_BYTES_MAX:
                raise ValueError(f"the headers of a request have at most {_HEAD_BYTES_MAX} bytes")
            return None
        head = _request_head(bytes(self._line[:end]))
        self._line = bytearray()
        self._has_head, self._is_chunked, self._left = True, head.length is None, head.length or 0
        self.is_complete = not head.has_body
        return head, data[end + 4 - before :]

    def _chunk_line(self, data: memoryview) -> memoryview:
        """Consumes a line around chunks: the end of one, the size of the next, or a trailer."""
        before = len(self._line)
        self._line += data[:_CHUNK_LINE_BYTES_MAX]
        end = self._line.find(b"\n", before)
        if end < 0:
            if len(self._line) > _CHUNK_LINE_BYTES_MAX:
                raise ValueError(f"the size of a chunk has at most {_CHUNK_LINE_BYTES_MAX} bytes")
            return data[len(self._line) - before :]
        line = bytes(self._line[:end]).strip()
        self._line = bytearray()
        if self._in_trailer:
            self.is_complete = not line
        elif line:
            self._left = int(line.partition(b";")[0], 16)
            self._in_trailer = not self._left
        return data[end + 1 - before :]


def _request_head(text: bytes) -> RequestHead:
    line, *lines = text.decode("latin-1").split("\r\n")
    method, _, rest = line.partition(" ")
    target = rest.rpartition(" ")[0]
    if method == "CONNECT" or not target.startswith(("/", "*")):
        raise OSError(errno.ENOTSUP, f"`{target}` is a request to a proxy, and a plugin cannot use one")
    length: int | None = 0
    headers = []
    for each in lines:
        name, _, value = each.partition(":")
        value = value.strip()
        headers.append((name, value.encode("latin-1")))
        if name.lower() == "content-length" and length is not None:
            length = int(value)
        elif name.lower() == "transfer-encoding":
            length = None
    return RequestHead(method, target, headers, length)


def response_head(status: int, headers: list[tuple[str, bytes]]) -> bytes:
    """Returns the head of a response after which the connection is closed."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '')}".encode("ascii")]
    lines += [
        name.encode("latin-1") + b": " + value for name, value in headers if name.lower() not in _TRANSFER_HEADERS
    ]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])
