"""The modules that a program can import: those that are imported while the component is made.

Modules that access the machine are left out, because they would not work.
"""

from __future__ import annotations

import abc
import array
import ast
import asyncio
import base64
import binascii
import bisect
import builtins
import calendar
import cmath
import collections
import collections.abc
import colorsys
import contextlib
import contextvars
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fnmatch
import fractions
import functools
import gc
import graphlib
import hashlib
import heapq
import hmac
import html
import html.parser
import inspect
import io
import ipaddress
import itertools
import json
import keyword
import linecache
import locale
import logging
import math
import numbers
import operator
import os.path
import pprint
import queue
import random
import re
import secrets
import shlex
import statistics
import string
import struct
import sys
import textwrap
import time
import traceback
import types
import typing
import unicodedata
import urllib.parse
import uuid
import warnings
import weakref
import xml.etree.ElementTree
import zlib

# Functions of the modules above import these on first use, when it would be too late.
import _strptime  # noqa: F401
import asyncio.runners  # noqa: F401
import asyncio.taskgroups  # noqa: F401
import asyncio.timeouts  # noqa: F401
import encodings.ascii  # noqa: F401
import encodings.charmap  # noqa: F401
import encodings.cp1252  # noqa: F401
import encodings.cp437  # noqa: F401
import encodings.hex_codec  # noqa: F401
import encodings.idna  # noqa: F401
import encodings.iso8859_1  # noqa: F401
import encodings.iso8859_15  # noqa: F401
import encodings.latin_1  # noqa: F401
import encodings.punycode  # noqa: F401
import encodings.raw_unicode_escape  # noqa: F401
import encodings.unicode_escape  # noqa: F401
import encodings.utf_16  # noqa: F401
import encodings.utf_16_be  # noqa: F401
import encodings.utf_16_le  # noqa: F401
import encodings.utf_32  # noqa: F401
import encodings.utf_8_sig  # noqa: F401

_ADVICE = {
    "requests": "",
    "httpx": "",
    "aiohttp": "",
    "urllib3": "",
    "urllib.request": "",
    "http": "",
    "socket": "",
    "ssl": "",
    "ftplib": "",
    "smtplib": "",
    "subprocess": "there are no other programs to run",
    "os": "there is no operating system",
    "shutil": "there are no files",
    "pathlib": "there are no files",
    "tempfile": "there are no files",
    "glob": "there are no files",
    "sqlite3": "there is no database; compute with lists and dicts",
    "threading": "there are no threads; `asyncio.gather(…)` runs calls of tools side by side",
    "multiprocessing": "there are no processes; `asyncio.gather(…)` runs calls of tools side by side",
    "concurrent": "there are no threads; `asyncio.gather(…)` runs calls of tools side by side",
    "numpy": "use `math`, `statistics` and lists",
    "pandas": "use `csv`, `collections` and lists of dicts",
    "scipy": "use `math` and `statistics`",
    "dateutil": "use `datetime`",
    "pytz": "use `datetime.timezone`",
    "zoneinfo": "there are no time zone data; use `datetime.timezone(timedelta(hours=…))`",
    "pydantic": "use `dataclasses`",
    "yaml": "use `json`",
    "bs4": "use `html.parser` or `re`",
    "lxml": "use `xml.etree.ElementTree`",
    "pip": "no packages can be installed",
}
"""What to do without a module; an empty text stands for the tools."""
PHANTOMS = frozenset(
    (
        "default_api",
        "functions",
        "mcp",
        "mcp_tools",
        "sandbox",
        "sandbox_tools",
        "tool_api",
        "tool_calls",
        "tools",
        "tools_api",
    )
)
"""Modules that models import and that do not exist, because `tools` is a variable."""
HIDDEN = frozenset(("cofferdam", "cofferdam_code", "interpreter", "componentize_py_types", "wit_world"))
"""Modules of this interpreter."""
SYSTEM_CALLS = frozenset(("system", "popen", "fork", "execv", "execve", "spawnl", "spawnv", "kill"))
"""Functions of `os` that cannot work."""

available: frozenset[str] = frozenset()


def install() -> None:
    """Records what can be imported."""
    global available
    names = {name for name in sys.modules if name.partition(".")[0] not in HIDDEN}
    # Modules that are written in C need no file.
    names.update(name for name in sys.builtin_module_names if name in _USEFUL)
    available = frozenset(names - _ADVICE.keys() - {"cofferdam_component"} | {"os", "os.path"})


_USEFUL = frozenset(("math", "cmath", "time", "itertools", "array", "errno"))


def advice(name: str) -> str | None:
    """Returns the advice for a module that a program cannot import: a text, an empty text for the
    tools, or `None` if there is no special one.
    """
    if name in _ADVICE:
        return _ADVICE[name]
    return _ADVICE.get(name.partition(".")[0])


def importable() -> list[str]:
    """Returns the public names for a message."""
    return sorted(name for name, value in globals().items() if isinstance(value, types.ModuleType) and name in _SHOWN)


_SHOWN = frozenset(
    "asyncio base64 calendar collections copy csv dataclasses datetime decimal enum fractions functools hashlib "
    "html itertools json math operator random re statistics string textwrap time typing urllib uuid xml".split()
)
