"""The conformance plugin in Python. See ../README.md for its tools."""

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict

from cofferdam import (
    Blob,
    Json,
    Link,
    RequestDenied,
    Resource,
    Text,
    ToolFailure,
    call,
    client,
    files,
    secrets,
    tool,
    toolbox,
)


@tool
def echo(text: str, flag: bool, integer: int, number: float, list: list[str], map: dict[str, int]) -> dict[str, Any]:
    """Returns all of its arguments.

    Args:
        text: A text.
        flag: A truth value.
        integer: An integer.
        number: A number.
        list: Texts.
        map: Integers by name.
    """
    return {"text": text, "flag": flag, "integer": integer, "number": number, "list": list, "map": map}


@tool
def defaults(
    count: int = 3,
    word: str = "abc",
    tags: tuple[str, ...] = ("x", "y"),
    ratio: float = 0.5,
    flag: bool = True,
) -> dict[str, Any]:
    """Returns its arguments, all of which have defaults.

    Args:
        count: An integer.
        word: A text.
        tags: Texts.
        ratio: A number.
        flag: A truth value.
    """
    return {"count": count, "word": word, "tags": tags, "ratio": ratio, "flag": flag}


@tool
def nullables(name: str | None, count: int | None) -> dict[str, Any]:
    """Returns its arguments, which may be null.

    Args:
        name: A text or nothing.
        count: An integer or nothing.
    """
    return {"name": name, "count": count}


class Status(Enum):
    """How far an order has come."""

    OPEN = "open"
    PAID = "paid"


class Customer(TypedDict):
    """Who orders."""

    name: str
    email: str | None


@dataclass
class Item:
    """What is ordered."""

    sku: str
    quantity: int = 1


@dataclass
class Order:
    """An order."""

    id: int
    customer: Customer
    items: list[Item]
    status: Status


@tool
def nested(order: Order) -> dict[str, Any]:
    """Sums an order up.

    Args:
        order: The order.
    """
    return {
        "id": order.id,
        "quantity": sum(item.quantity for item in order.items),
        "first": order.items[0].sku if order.items else None,
        "customer": order.customer["name"],
        "email": order.customer["email"],
        "status": order.status,
    }


@tool
def fail(
    kind: Literal["plain", "suggestion", "transient", "permanent", "value", "empty", "exception"],
) -> None:
    """Reports a failure.

    Args:
        kind: Which.
    """
    message = "it went wrong"
    match kind:
        case "plain":
            raise ToolFailure(message)
        case "suggestion":
            raise ToolFailure(message, suggestion="try again tomorrow")
        case "transient":
            raise ToolFailure(message, transient=True)
        case "permanent":
            raise ToolFailure(message, transient=False)
        case "value":
            raise ToolFailure(message, value={"code": 7, "detail": ["a", None]})
        case "empty":
            raise ToolFailure("")
        case "exception":
            raise LookupError("the shelf is empty")


@tool
def unicode(text: str) -> dict[str, Any]:
    """Counts a text and turns it around.

    Args:
        text: A text.
    """
    return {"text": text, "characters": len(text), "bytes": len(text.encode()), "reversed": text[::-1]}


@tool
def big_numbers(integer: int, number: float) -> dict[str, Any]:
    """Returns its arguments with all their digits.

    Args:
        integer: An integer of 64 bits.
        number: A number.
    """
    return {"integer": integer, "number": number}


@tool
def nothing() -> None:
    """Returns nothing."""


@tool
def word() -> str:
    """Returns a text."""
    return "word"


@tool
def blob(size: int) -> Blob:
    """Returns bytes.

    Args:
        size: How many.
    """
    return Blob("application/octet-stream", bytes(at & 255 for at in range(size)))


@tool
def several() -> list[Text | Json | Blob | Resource | Link]:
    """Returns one content of each kind."""
    return [
        Text("one"),
        Json({"two": 2}),
        Blob("image/png", bytes([137, 80, 78, 71])),
        Resource("memo:three", "three", "text/plain"),
        Link("https://example.com/four.csv", "four.csv", "text/csv"),
    ]


@tool
def store(store: str, path: str, text: str) -> dict[str, Any]:
    """Writes a file of a store and finds it again.

    Args:
        store: The name of the store.
        path: The file.
        text: What to write.
    """
    data = files.Store(store)
    data.create(path, text)
    found = data.search("needle", case_sensitive=True)
    return {
        "text": data.read_text(path),
        "size": data.stat(path).size,
        "files": sorted((entry.name for entry in data.list(recursive=True)), key=str.encode),
        "lines": [line.number for match in found.matches if match.path == path for line in match.lines],
    }


@tool
def missing(store: str) -> str:
    """Finds out that a file is not there.

    Args:
        store: The name of the store.
    """
    try:
        return files.Store(store).read_text("nosuch.txt")
    except files.NotFound:
        return "not found"


@tool
def local_file(path: str) -> str:
    """Reads a file as Python does.

    Args:
        path: The file.
    """
    return Path(path).read_text()


@tool
def progress(steps: int) -> dict[str, Any]:
    """Reports progress.

    Args:
        steps: How often.
    """
    for step in range(1, steps + 1):
        call.progress(step, steps, f"step {step}")
    return {
        "has_id": bool(call.id()),
        "has_time_left": call.time_left() > 0,
        "cancelled": call.cancelled(),
    }


@tool
def log(message: str) -> None:
    """Says something.

    Args:
        message: What.
    """
    client.log("warning", message)
    print(f"{message} (printed)", file=sys.stderr)


@tool
def relay(tool: str, arguments: dict[str, Any]) -> Any:
    """Calls another tool.

    Args:
        tool: Its name.
        arguments: Its arguments.
    """
    try:
        return toolbox.call(tool, arguments)
    except toolbox.UnknownTool:
        raise ToolFailure(f"there is no tool `{tool}`") from None


@tool
def secret(name: str) -> int:
    """Counts the characters of a secret.

    Args:
        name: Its name.
    """
    try:
        return len(secrets.get(name))
    except secrets.AccessDenied:
        raise ToolFailure("access denied") from None


class Answer(TypedDict):
    """An answer."""

    answer: int


@tool(
    title="An annotated tool",
    group="reading",
    read_only=True,
    destructive=False,
    idempotent=True,
    open_world=False,
    output_schema=True,
)
def annotated() -> Answer:
    """Says what it does, beside what it returns."""
    return {"answer": 42}


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    """Returns redirects as responses."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        return fp

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


@tool
def http(
    url: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: str | None = None,
    send_bytes: int = 0,
    timeout_ms: int = 0,
    follow: bool = True,
    count: int = 1,
    parallel: int = 1,
) -> dict[str, Any]:
    """Sends requests over HTTP and returns the last response.

    Args:
        url: The URL.
        method: The method.
        headers: Headers of the request.
        body: The text to send.
        send_bytes: Number of bytes to send instead, in chunks.
        timeout_ms: Timeout in milliseconds; 0 for none.
        follow: True to follow redirects.
        count: Number of requests, one after the other.
        parallel: Number of requests at once.
    """
    send = urllib.request.urlopen if follow else urllib.request.build_opener(_Unfollowed).open
    timeout = timeout_ms / 1000 if timeout_ms else None
    ok, result = 0, {}
    try:
        for _ in range(count * parallel):
            data = _chunks(send_bytes) if send_bytes else None if body is None else body.encode()
            request = urllib.request.Request(url, data, headers or {}, method=method)
            with send(request, timeout=timeout) as response:
                content = response.read()
                ok += response.status < 400
                result = {
                    "status": response.status,
                    "url": response.url,
                    "type": response.headers["content-type"],
                    "bytes": len(content),
                    "text": content.decode(errors="replace") if len(content) <= 2000 else "",
                }
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise ToolFailure("timeout") from None
        if isinstance(error.reason, RequestDenied):
            raise error.reason from None
        raise ToolFailure(str(error)) from None
    except TimeoutError:
        raise ToolFailure("timeout") from None
    except OSError as error:
        raise ToolFailure(str(error)) from None
    return {**result, "ok": ok}


def _chunks(size: int) -> Iterator[bytes]:
    chunk = b"x" * 65536
    for left in range(size, 0, -len(chunk)):
        yield chunk[:left]
