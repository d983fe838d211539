"""Sends sample requests while the component is made. The requests of calls then find the modules that
they import, and code that is specialized for them.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from typing import Any

from cofferdam._http import _socket
from cofferdam._http._wire import RequestHead


class _SampleExchange:
    """Stands in for an `Exchange` while there is no host."""

    def __init__(self, scheme: str, authority: str, head: RequestHead, timeout: float | None) -> None:
        self._content = b"{}"

    def write(self, data: memoryview, timeout: float | None) -> None:
        pass

    def finish(self) -> None:
        pass

    def head(self, timeout: float | None) -> tuple[int, list[tuple[str, bytes]]]:
        return 200, [("content-type", b"application/json"), ("content-length", b"%d" % len(self._content))]

    def read(self, size: int, timeout: float | None) -> bytes:
        content, self._content = self._content[:size], self._content[size:]
        return content

    def close(self) -> None:
        pass


def up(_call: Callable[[str, str], Any]) -> None:
    """Makes the opener of `urlopen`, unless the plugin has made one, and sends requests that a
    sample answers.
    """
    if urllib.request._opener is None:  # type: ignore[attr-defined]
        urllib.request.install_opener(urllib.request.build_opener())
    exchange = _socket.Exchange
    _socket.Exchange = _SampleExchange  # type: ignore[misc, assignment]
    try:
        for data in (None, b"{}"):
            request = urllib.request.Request("http://sample/path?query=1", data, {"Accept": "*/*"})
            # Not `urlopen`, whose opener can be the plugin's.
            with urllib.request.build_opener().open(request, timeout=1.0) as response:
                response.read()
    except Exception:
        # A plugin may have replaced parts of the library. Its calls work without samples.
        pass
    finally:
        _socket.Exchange = exchange  # type: ignore[misc]
