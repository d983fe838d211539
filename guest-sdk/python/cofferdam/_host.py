"""Access to the host: through the generated bindings in a component, through stand-ins outside one.

By default the stand-in of a module grants nothing. `cofferdam.testing.host` replaces it with one
that grants what a test defines.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


class _NativeErr(Exception):
    """Exception of a stand-in, like that of a function of the host."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


IS_COMPONENT = sys.platform == "wasi"

Err: Any = importlib.import_module("componentize_py_types").Err if IS_COMPONENT else _NativeErr
"""Exception of a function of the host; `value` contains the error."""


WARM_UP: list[Callable[[Callable[[str, str], Any]], None]] = []
"""Functions that call tools like a host, with the function that they get. They run several times
while the component is made."""


def interface(name: str, nobody: Any) -> Any:
    """Returns the functions of `cofferdam:plugin/<name>`, or `nobody` outside a component."""
    if not IS_COMPONENT:
        return nobody
    return imported(name) or _NotImported(name)


def imported(*names: str) -> Any:
    """Returns the generated bindings of the first of these interfaces that the component imports,
    or `None`.
    """
    for name in names:
        try:
            return importlib.import_module(f"wit_world.imports.{name}")
        except ImportError:
            pass
    return None


class _NotImported:
    """Replaces an interface that the component does not import, because its source did not seem to
    use it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        raise RuntimeError(
            f"this component does not import `cofferdam:plugin/{self._name}`: `cofferdam build` found no use of it; "
            f"write `from cofferdam import {self._name}` in a source file of the plugin"
        )


def case(value: Any) -> str:
    """Returns the name of a case of a variant: `NotFound` for `Error_NotFound`."""
    return type(value).__name__.rpartition("_")[2]


def text(value: Any) -> str:
    """Returns the payload of a case of a variant if it is a string."""
    carried = getattr(value, "value", "")
    return carried if isinstance(carried, str) else ""
