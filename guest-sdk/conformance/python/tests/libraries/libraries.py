"""Requests with the HTTP libraries that are packages."""

from collections.abc import Iterator
from typing import Any, Literal

import httpx
import requests
from cofferdam import ToolFailure, tool


@tool
def fetch(
    library: Literal["requests", "httpx"],
    url: str,
    method: str = "GET",
    body: str | None = None,
    send_bytes: int = 0,
    timeout_ms: int = 0,
) -> dict[str, Any]:
    """Sends a request over HTTP, follows redirects and reads the response in parts.

    Args:
        library: The library.
        url: The URL.
        method: The method.
        body: The text to send.
        send_bytes: Number of bytes to send instead, in chunks.
        timeout_ms: Timeout in milliseconds; 0 for none.
    """
    content = _chunks(send_bytes) if send_bytes else None if body is None else body.encode()
    timeout = timeout_ms / 1000 if timeout_ms else None
    try:
        if library == "requests":
            with requests.request(method, url, data=content, timeout=timeout, stream=True) as response:
                return _result(response.status_code, response.url, response.iter_content(8192))
        with (
            httpx.Client(timeout=timeout, follow_redirects=True) as client,
            client.stream(method, url, content=content) as response,
        ):
            return _result(response.status_code, str(response.url), response.iter_bytes())
    except (requests.Timeout, httpx.TimeoutException):
        raise ToolFailure("timeout") from None


def _result(status: int, url: str, parts: Iterator[bytes]) -> dict[str, Any]:
    content = b"".join(parts)
    text = content.decode(errors="replace") if len(content) <= 2000 else ""
    return {"status": status, "url": url, "bytes": len(content), "text": text}


def _chunks(size: int) -> Iterator[bytes]:
    chunk = b"x" * 65536
    for left in range(size, 0, -len(chunk)):
        yield chunk[:left]
