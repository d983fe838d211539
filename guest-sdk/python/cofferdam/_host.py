"""Where the host is: in a component the bindings that were generated for it, natively nobody.

Natively each module has a stand-in that answers as a host does that grants nothing; `cofferdam.testing.host` puts one there that
grants what a test says.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


class _NativeErr(Exception):
    """How a stand-in fails, as a function of the host does."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


IS_COMPONENT = sys.platform == "wasi"

Err: Any = importlib.import_module("componentize_py_types").Err if IS_COMPONENT else _NativeErr
"""How a function of the host fails; `value` says why."""


def interface(name: str, nobody: Any) -> Any:
    """The functions of `cofferdam:plugin/<name>`; natively `nobody`."""
    if not IS_COMPONENT:
        return nobody
    try:
        return importlib.import_module(f"wit_world.imports.{name}")
    except ImportError:
        return _NotImported(name)


class _NotImported:
    """In place of an interface that the component does not import, because its source did not seem to use it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        raise RuntimeError(
            f"this component does not import `cofferdam:plugin/{self._name}`: `cofferdam build` found no use of it; "
            f"write `from cofferdam import {self._name}` in a source file of the plugin"
        )


def case(value: Any) -> str:
    """The name of a case of a variant: `Error_NotFound` is `NotFound`."""
    return type(value).__name__.rpartition("_")[2]


def text(value: Any) -> str:
    """What a case of a variant carries, if it is text."""
    carried = getattr(value, "value", "")
    return carried if isinstance(carried, str) else ""
