"""Exceptions of requests, as sockets and `ssl` raise them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

from cofferdam import _host
from cofferdam._failure import RequestDenied


class SSLError(OSError):
    """Stands in for `ssl.SSLError`."""

    library: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class SSLCertVerificationError(SSLError, ValueError):
    """Stands in for `ssl.SSLCertVerificationError`."""

    verify_code = 0
    verify_message = ""


class ConnectTimeout(TimeoutError):
    """The connection was not established in time."""


def of_code(code: Any, scheme: str, authority: str) -> Exception:
    """Returns the exception for an error code of `wasi:http`.

    Args:
        code: A case of the variant `error-code`.
        scheme: Scheme of the request, `http` or `https`.
        authority: Its host, and its port unless that is the scheme's own.
    """
    case = _host.case(code)
    if case == "HttpRequestDenied":
        return RequestDenied(
            f"{authority}: no grant for this request; the operator can allow it with "
            f"--allow-http {scheme}://{authority}/"
        )
    if case in _CASES:
        return _CASES[case](authority)
    if case in _LIMITS:
        return ConnectionError(f"{authority}: {_LIMITS[case]}{_bytes(getattr(code, 'value', None))}")
    return ConnectionError(f"the connection to {authority} failed: {case}")


def _bytes(maximum: Any) -> str:
    return f" of {maximum} bytes" if isinstance(maximum, int) else ""


def _timeout(_: str) -> Exception:
    return TimeoutError("timed out")


def _connect_timeout(_: str) -> Exception:
    return ConnectTimeout("timed out")


def _reset(authority: str) -> Exception:
    message = f"the connection to {authority} was closed before the response was complete"
    return ConnectionResetError(errno.ECONNRESET, message)


def _certificate(authority: str) -> Exception:
    return SSLCertVerificationError(1, f"the certificate of {authority} was rejected")


_CASES: dict[str, Callable[[str], Exception]] = {
    "DnsTimeout": lambda host: socket.gaierror(socket.EAI_AGAIN, f"the lookup of the host {host} timed out"),
    "DnsError": lambda host: socket.gaierror(socket.EAI_NONAME, f"the host {host} is unknown"),
    "DestinationIpProhibited": lambda host: RequestDenied(
        f"{host}: no grant for its address, which is not public; the operator can allow it with `addresses` beside "
        "the rule"
    ),
    "DestinationIpUnroutable": lambda host: OSError(errno.EHOSTUNREACH, f"there is no route to the host {host}"),
    "ConnectionRefused": lambda host: ConnectionRefusedError(
        errno.ECONNREFUSED, f"the connection to {host} was refused"
    ),
    "ConnectionTerminated": _reset,
    "HttpResponseIncomplete": _reset,
    "ConnectionTimeout": _connect_timeout,
    "ConnectionReadTimeout": _timeout,
    "ConnectionWriteTimeout": _timeout,
    "HttpResponseTimeout": _timeout,
    "TlsCertificateError": _certificate,
    "TlsProtocolError": lambda host: SSLError(1, f"the TLS connection to {host} failed"),
    "TlsAlertReceived": lambda host: SSLError(1, f"{host} refused the TLS connection"),
    "HttpRequestUriInvalid": lambda host: ValueError(f"the URL of the request to {host} is invalid"),
    "HttpRequestMethodInvalid": lambda host: ValueError(f"the method of the request to {host} is invalid"),
    "HttpProtocolError": lambda host: ConnectionError(f"the connection to {host} failed: its server broke HTTP"),
    "ConfigurationError": lambda host: ConnectionError(f"{host}: a header that the operator configured has no value"),
}

_LIMITS = {
    "ConnectionLimitReached": "the host has reached its limit of open connections",
    "HttpRequestBodySize": "the call has reached its limit of sent data",
    "HttpResponseBodySize": "the call has reached its limit of received data",
    "HttpResponseHeaderSectionSize": "the headers of the response exceed the limit of 100 headers, or that",
}
