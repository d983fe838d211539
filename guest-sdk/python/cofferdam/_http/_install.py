"""Makes the HTTP libraries of Python send requests through the host.

`install` gives the standard library its transport, and has to run before its HTTP modules are
imported. `adapt` does the same for urllib3, requests and httpx, after they were imported. Both run
while the component is made.
"""

from __future__ import annotations

import sys
from typing import Any

from cofferdam._http import _ssl
from cofferdam._http._errors import SSLError
from cofferdam._http._socket import HttpSocket


def install() -> None:
    """Makes `http.client` and `urllib.request` send requests through the host."""
    sys.modules["ssl"] = _ssl
    # Names of hosts need this codec, which is imported on first use otherwise.
    import encodings.idna  # noqa: F401
    import urllib.request
    from http.client import HTTPConnection, HTTPSConnection

    def connect(self: Any) -> None:
        self.sock = HttpSocket(self.host, self.port, self.timeout)
        if self._tunnel_host:
            self._tunnel()

    HTTPConnection.connect = connect  # type: ignore[method-assign]

    def awaits_response(connection: type[HTTPConnection]) -> type[HTTPConnection]:
        """Returns a class whose `request` raises errors of the connection, which `urlopen` reports
        as `URLError`.
        """

        class Connection(connection):  # type: ignore[misc, valid-type]
            def request(self, *args: Any, **options: Any) -> None:
                super().request(*args, **options)
                if isinstance(self.sock, HttpSocket):
                    self.sock.await_response()

        Connection.__name__ = Connection.__qualname__ = connection.__name__
        return Connection

    def do_open(self: Any, http_class: Any, request: Any, **options: Any) -> Any:
        return original(self, classes.get(http_class, http_class), request, **options)

    classes = {each: awaits_response(each) for each in (HTTPConnection, HTTPSConnection)}
    original = urllib.request.AbstractHTTPHandler.do_open
    urllib.request.AbstractHTTPHandler.do_open = do_open  # type: ignore[assignment, method-assign]


def adapt() -> None:
    """Makes the imported ones of urllib3, requests, httpcore and httpx send requests through the
    host.
    """
    if "urllib3" in sys.modules:
        _adapt_urllib3()
    if "requests" in sys.modules:
        _adapt_requests()
    if "httpx" in sys.modules:
        # It imports its transport when a client is created.
        import httpcore  # type: ignore[import-not-found]  # noqa: F401
    if "httpcore" in sys.modules:
        _adapt_httpcore()


def _adapt_urllib3() -> None:
    from urllib3.util import connection  # type: ignore[import-not-found]

    def create_connection(address: tuple[str, int], timeout: Any = None, *_: Any, **__: Any) -> HttpSocket:
        host, port = address
        return HttpSocket(host.strip("[]"), port, timeout)

    connection.create_connection = create_connection


def _adapt_requests() -> None:
    import requests.adapters  # type: ignore[import-untyped]

    def cert_verify(self: Any, conn: Any, url: str, verify: Any, cert: Any) -> None:
        # The original looks for the file with the authorities, which only the host needs.
        if cert:
            raise SSLError(1, "a plugin cannot use a client certificate")

    requests.adapters.HTTPAdapter.cert_verify = cert_verify


def _adapt_httpcore() -> None:
    import httpcore

    from cofferdam._http._httpcore import connect_tcp

    httpcore.SyncBackend.connect_tcp = connect_tcp
