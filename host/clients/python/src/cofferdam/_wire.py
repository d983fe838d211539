"""Messages as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

from ._errors import MessageTooLong

MESSAGE_BYTES_MAX = 16 * 1024 * 1024

Message = dict[str, Any]

# Their methods spare the checks with which `json.dumps` and `json.loads` begin.
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_decoder = json.JSONDecoder()


def encode(message: Message) -> bytes:
    """Returns the line of a message."""
    line = _encoder.encode(message).encode() + b"\n"
    if len(line) > MESSAGE_BYTES_MAX:
        raise MessageTooLong(
            f"expected a message of at most {MESSAGE_BYTES_MAX} bytes, found {len(line)} bytes"
        )
    return line


def decode(line: bytes) -> Message:
    """Returns a message.

    The record of a result is its last member and most of its bytes. It stays JSON in
    `record_json` until the program reads it. An unescaped quote cannot be inside of a string, so
    what precedes the name of the member is complete, or it is not JSON at all.
    """
    message: Message
    head, name, record = line.rpartition(b',"record":{')
    if name and line.startswith(b'{"type":"result"'):
        text = (head + b"}").decode()
        try:
            message, end = _decoder.raw_decode(text)
        except ValueError:
            end = 0
        if end == len(text):
            message["record_json"] = b"{" + record.rstrip()[:-1]
            return message
    message = json.loads(line.decode())
    if not isinstance(message, dict):
        raise ValueError(f"expected an object, found {line[:40]!r}")
    return message
