"""Turns the arguments of `Cofferdam` into flags of `cofferdam pipe`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

# Its milliseconds are a number that JSON carries exactly.
_SECONDS_MAX = 10**12

Path = str | os.PathLike[str]
Names = str | Iterable[str]


class Options(TypedDict):
    """The arguments of `Cofferdam` that are flags of the command."""

    plugins: Path | Iterable[Path] | Mapping[str, Path]
    mounts: Mapping[str, Path]
    config: Path | None
    files: Path | Mapping[str, Path] | None
    allow_http: Names
    allow_env: Names | Mapping[str, str]
    secrets: Names | Mapping[str, str]
    allow: Names
    limits: Mapping[str, int]
    timeout: float | None
    memory: int | None
    tools: Names | None
    toolsets: Names | None
    code: bool | Literal["both", "only"]
    code_language: Literal["javascript", "python"] | None
    record: bool
    cache_dir: Path | Literal[False] | None


def command_line(options: Options) -> list[str]:
    """Returns the flags for `options`."""
    flags = [f"--plugin={value}" for value in _pairs(options["plugins"])]
    flags += [f"--mount={value}" for value in _pairs(options["mounts"])]
    if options["config"] is not None:
        flags.append(f"--config={os.fspath(options['config'])}")
    if options["files"] is not None:
        flags += [f"--files={value}" for value in _pairs(options["files"])]
    flags += [f"--allow-http={value}" for value in _pairs(options["allow_http"])]
    flags += [f"--allow-env={value}" for value in _pairs(options["allow_env"])]
    flags += [f"--secret={value}" for value in _pairs(options["secrets"])]
    flags += [f"--allow={value}" for value in _pairs(options["allow"])]
    for name, number in options["limits"].items():
        flags.append(f"--limit={name.replace('_', '-')}={number}")
    if options["timeout"] is not None:
        flags.append(f"--timeout={milliseconds(options['timeout'])}ms")
    if options["memory"] is not None:
        flags.append(f"--memory={options['memory']}")
    if options["tools"] is not None:
        flags.append(f"--tools={','.join(_pairs(options['tools']))}")
    flags += [f"--toolset={value}" for value in _pairs(options["toolsets"] or ())]
    if options["code"]:
        flags.append(f"--code={'both' if options['code'] is True else options['code']}")
    if options["code_language"] is not None:
        flags.append(f"--code-language={options['code_language']}")
    if options["record"]:
        flags.append("--record")
    if options["cache_dir"] is False:
        flags.append("--no-cache")
    elif options["cache_dir"] is not None:
        flags.append(f"--cache-dir={os.fspath(options['cache_dir'])}")
    return flags


def milliseconds(seconds: float) -> int:
    """Returns a time limit in milliseconds, at least 1."""
    if not 0 < seconds < _SECONDS_MAX:
        raise ValueError(
            f"expected a timeout above 0 and below {_SECONDS_MAX} seconds, found {seconds!r}"
        )
    return max(1, round(seconds * 1000))


def _pairs(values: Any) -> list[str]:
    """Returns `NAME=VALUE` for a mapping, and the values otherwise. A string is one value."""
    if isinstance(values, Mapping):
        return [f"{name}={os.fspath(value)}" for name, value in values.items()]
    if isinstance(values, (str, os.PathLike)):
        return [os.fspath(values)]
    return [os.fspath(value) for value in values]
