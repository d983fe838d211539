"""The clock and the random numbers of a program, which depend only on the arguments of the run.

The clock stands still, except that waiting advances it: `asyncio.sleep(5)` takes no time, and the
clock is five seconds later afterwards. Otherwise a program that polls until a time would not end.
"""

from __future__ import annotations

import datetime
import gc
import os
import random
import sys
import time
from typing import Any

_real_time = time.time
_started_ns = 0
_waited = 0.0


def install() -> None:
    """Replaces the functions of the standard library. Runs while the component is made."""
    time.time = now
    time.time_ns = now_ns
    time.monotonic = time.perf_counter = time.process_time = time.thread_time = waited
    time.monotonic_ns = time.perf_counter_ns = time.process_time_ns = time.thread_time_ns = _waited_ns
    time.sleep = _sleep
    for name in ("gmtime", "localtime"):
        setattr(time, name, _of_time(getattr(time, name)))
    time.ctime = _ctime
    time.strftime = _strftime
    # `datetime` is written in C and reads the clock of the host itself.
    members = gc.get_referents(datetime.datetime.__dict__)[0]
    members["now"] = classmethod(_datetime_now)
    members["utcnow"] = classmethod(_datetime_utcnow)
    sys._clear_type_cache()
    os.urandom = random._urandom = _urandom


def start(now_ms: int | None, seed: str, seeded: bool) -> None:
    """Sets the clock, and seeds the random numbers if the program may use them."""
    global _started_ns, _waited
    _started_ns = int(_real_time() * 1000) * 1_000_000 if now_ms is None else now_ms * 1_000_000
    _waited = 0.0
    if seeded:
        number = int(seed) if seed.isdecimal() else 0
        random.seed(number)
        _bytes.seed(number ^ 0x5DEECE66D)


def now() -> float:
    """Returns the current time in seconds since the Epoch."""
    return now_ns() / 1_000_000_000


def now_ns() -> int:
    """Returns the current time in nanoseconds since the Epoch."""
    return _started_ns + int(_waited * 1_000_000_000)


def waited() -> float:
    """Returns the seconds for which the program has waited."""
    return _waited


def advance(until: float) -> None:
    """Advances the clock to the moment at which the program will have waited for so long."""
    global _waited
    _waited = max(_waited, until)


def _waited_ns() -> int:
    return int(_waited * 1_000_000_000)


def _sleep(seconds: float) -> None:
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    advance(_waited + seconds)


def _of_time(function: Any) -> Any:
    def of_time(seconds: float | None = None) -> time.struct_time:
        return function(now() if seconds is None else seconds)

    return of_time


_real_strftime, _real_ctime = time.strftime, time.ctime


def _strftime(format: str, of: Any = None) -> str:
    return _real_strftime(format, time.localtime() if of is None else of)


def _ctime(seconds: float | None = None) -> str:
    return _real_ctime(now() if seconds is None else seconds)


def _datetime_now(cls: Any, tz: datetime.tzinfo | None = None) -> Any:
    """Returns the current time of a time zone, or local time without one."""
    return cls.fromtimestamp(now(), tz)


def _datetime_utcnow(cls: Any) -> Any:
    """Returns the current time in UTC."""
    return cls.fromtimestamp(now(), datetime.timezone.utc).replace(tzinfo=None)


_bytes = random.Random(0)


def _urandom(size: int, /) -> bytes:
    """Returns bytes that depend only on the seed of the run."""
    return _bytes.randbytes(size)
