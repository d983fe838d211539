"""Finds the program `cofferdam`."""

from __future__ import annotations

import os

from ._errors import StartError

_VARIABLE = "COFFERDAM"
_NAME = "cofferdam.exe" if os.name == "nt" else "cofferdam"


def find_executable(given: str | os.PathLike[str] | None) -> str:
    """Returns the path of the program.

    Uses the given path, the environment variable `COFFERDAM`, the scripts directory of this
    Python installation, or `PATH`, in this order. A path that was set and does not exist is an
    error, and nothing else is tried.
    """
    if given is not None:
        return _existing(os.fspath(given), "`executable`")
    named = os.environ.get(_VARIABLE)
    if named:
        return _existing(named, f"the environment variable `{_VARIABLE}`")
    import shutil
    import sysconfig

    installed = os.path.join(sysconfig.get_path("scripts"), _NAME)
    found = installed if os.path.isfile(installed) else shutil.which(_NAME)
    if found is None:
        raise StartError(
            f"the program `{_NAME}` is neither in {installed!r} nor in `PATH`: install the package "
            f"`cofferdam-host`, set `{_VARIABLE}` to its path, or pass `executable`"
        )
    return found


def _existing(path: str, setting: str) -> str:
    if not os.path.isfile(path):
        raise StartError(f"{setting} names {path!r}, which is not a file")
    return path
