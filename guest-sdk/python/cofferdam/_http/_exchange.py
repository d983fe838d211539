"""One request and its response over `wasi:http`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import (  # type: ignore[import-not-found]
    monotonic_clock,
    outgoing_handler,
    poll,
    wasi_http_types,
)

from cofferdam import _host
from cofferdam._http import _errors
from cofferdam._http._wire import RequestHead

# Headers that belong to the connection, which is the host's. It refuses requests that set them.
_CONNECTION_HEADERS = frozenset(
    (
        "connection",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "upgrade",
    )
)
_METHODS = {
    name.upper(): getattr(wasi_http_types, f"Method_{name}")()
    for name in ("Get", "Head", "Post", "Put", "Delete", "Options", "Patch")
}
_SCHEMES = {"http": wasi_http_types.Scheme_Http(), "https": wasi_http_types.Scheme_Https()}


class Exchange:
    """A request that is being sent, and its response.

    Resources of the host have to be released before those that they come from, so `close` releases
    all of them in that order.
    """

    def __init__(self, scheme: str, authority: str, head: RequestHead, timeout: float | None) -> None:
        """Begins to send a request.

        Args:
            scheme: `http` or `https`.
            authority: Host and port.
            head: The request. Headers that belong to the connection are left out. If it has a body,
                `write` and `finish` follow.
            timeout: Seconds until the connection has to be established. `None` for the host's own
                limit.

        Raises:
            OSError: If the host refuses the request at once.
            ValueError: If the URL, the method or a header is invalid.
        """
        self._scheme, self._authority = scheme, authority
        self._body: Any = None
        self._output: Any = None
        self._future: Any = None
        self._response: Any = None
        self._input_body: Any = None
        self._input: Any = None
        self._error: Exception | None = None
        request = self._request(head)
        if head.has_body:
            self._body = request.body()
            self._output = self._body.write()
        options = None
        if timeout is not None:
            options = wasi_http_types.RequestOptions()
            options.set_connect_timeout(_nanoseconds(timeout))
        try:
            self._future = outgoing_handler.handle(request, options)
        except _host.Err as error:
            raise self._failure(error.value) from None

    def _request(self, head: RequestHead) -> Any:
        kept = [each for each in head.headers if each[0].lower() not in _CONNECTION_HEADERS]
        try:
            request = wasi_http_types.OutgoingRequest(wasi_http_types.Fields.from_list(kept))
        except _host.Err:
            raise ValueError(f"a header of the request to {self._authority} is invalid") from None
        try:
            request.set_method(_METHODS.get(head.method) or wasi_http_types.Method_Other(head.method))
        except _host.Err:
            raise ValueError(f"the method `{head.method}` is invalid") from None
        try:
            request.set_scheme(_SCHEMES[self._scheme])
            request.set_authority(self._authority)
            request.set_path_with_query(head.target)
        except _host.Err:
            raise ValueError(f"the URL of the request to {self._authority} is invalid") from None
        return request

    def _failure(self, code: Any) -> Exception:
        self._error = _errors.of_code(code, self._scheme, self._authority)
        return self._error

    def write(self, data: memoryview, timeout: float | None) -> None:
        """Sends a part of the body. Does nothing once the server reads no more of it; the response
        gives the reason.

        Raises:
            TimeoutError: If none of it can be sent within `timeout` seconds.
        """
        while data and self._output is not None:
            try:
                permitted = self._output.check_write()
                if permitted:
                    self._output.write(bytes(data[:permitted]))
                    data = data[permitted:]
            except _host.Err as error:
                _release_error(error.value)
                self.finish()
                return
            if not permitted:
                _wait(self._output, timeout)

    def finish(self) -> None:
        """Ends the body."""
        body, self._body = self._body, None
        self._output = _release(self._output)
        if body is not None:
            try:
                wasi_http_types.OutgoingBody.finish(body, None)
            except _host.Err:
                # The response gives the reason.
                pass

    def head(self, timeout: float | None) -> tuple[int, list[tuple[str, bytes]]]:
        """Waits for the head of the response and returns its status and its headers.

        Raises:
            TimeoutError: If it does not arrive within `timeout` seconds.
            OSError: If the request failed.
        """
        if self._error is not None:
            raise self._error
        if self._response is None:
            _wait(self._future, timeout)
            result = self._future.get().value
            self._future = _release(self._future)
            if isinstance(result, _host.Err):
                raise self._failure(result.value)
            self._response = result.value
        with self._response.headers() as fields:
            headers = fields.entries()
        status = self._response.status()
        if self._input is None:
            self._input_body = self._response.consume()
            self._input = self._input_body.stream()
        return status, headers

    def read(self, size: int, timeout: float | None) -> bytes:
        """Returns at most `size` bytes of the response's body, and none at its end.

        Raises:
            TimeoutError: If none arrives within `timeout` seconds.
            OSError: If the body ends with an error.
        """
        while self._input is not None:
            try:
                data: bytes = self._input.read(size)
            except _host.Err as error:
                code = _code_of(error.value)
                self._input = _release(self._input)
                if code is not None:
                    raise self._failure(code) from None
                break
            if data:
                return data
            _wait(self._input, timeout)
        if self._error is not None:
            raise self._error
        return b""

    def close(self) -> None:
        """Ends the exchange and closes its connection."""
        self._input = _release(self._input)
        self._input_body = _release(self._input_body)
        self._response = _release(self._response)
        self._output = _release(self._output)
        self._body = _release(self._body)
        self._future = _release(self._future)

    __del__ = close


def _wait(source: Any, timeout: float | None) -> None:
    """Waits until a stream or a future is ready.

    Raises:
        TimeoutError: If it is not within `timeout` seconds.
    """
    with source.subscribe() as pollable:
        if timeout is None:
            pollable.block()
            return
        with monotonic_clock.subscribe_duration(_nanoseconds(timeout)) as clock:
            if 0 not in poll.poll([pollable, clock]):
                raise TimeoutError("timed out")


def _nanoseconds(seconds: float) -> int:
    return min(max(0, int(seconds * 1e9)), (1 << 63) - 1)


def _release(resource: Any) -> Any:
    """Releases a resource of the host, if there is one, and returns `None` to replace it."""
    if resource is not None:
        resource.__exit__(None, None, None)
    return None


def _code_of(error: Any) -> Any:
    """Returns the error code of a stream. `None` if it ended normally."""
    if _host.case(error) == "Closed":
        return None
    with error.value as cause:
        return wasi_http_types.http_error_code(cause) or wasi_http_types.ErrorCode_InternalError(None)


def _release_error(error: Any) -> None:
    if _host.case(error) != "Closed":
        _release(error.value)
