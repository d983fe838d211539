"""What a program prints."""

from __future__ import annotations

import io

BYTES_MAX = 64 << 10


class Output(io.TextIOBase):
    """Keeps the first 64 KiB of what is written, and counts the lines after that."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = BYTES_MAX
        self._more = 0
        self._cut = False
        self._ends_line = True

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Writes text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._cut:
            self._count(text)
        elif len(text) * 4 <= self._left or _bytes(text) <= self._left:
            self._parts.append(text)
            self._left -= len(text) if text.isascii() else _bytes(text)
        else:
            self._cut_at(text)
        return len(text)

    def logs(self) -> str:
        """Returns what was written, with a last line that counts what is missing."""
        text = "".join(self._parts)
        if not self._cut:
            return text
        lines = self._more + (0 if self._ends_line else 1)
        words = "1 more line" if lines == 1 else f"{lines} more lines"
        return f"{text}\n… {words}" if text and not text.endswith("\n") else f"{text}… {words}"

    def _cut_at(self, text: str) -> None:
        kept = text.encode("utf-8", "replace")[: self._left].decode("utf-8", "ignore")
        # Cuts at the end of a line if there is one.
        end = kept.rfind("\n") + 1
        if end:
            kept = kept[:end]
        self._parts.append(kept)
        self._cut = True
        self._count(text[len(kept) :])

    def _count(self, text: str) -> None:
        if text:
            self._more += text.count("\n")
            self._ends_line = text.endswith("\n")


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
