"""Functions of the program that are tools of the host."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from . import _schema
from ._errors import ToolFailure
from ._log import log_exception

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Function:
    """A function with its declaration as a tool."""

    __slots__ = ("call", "declaration", "is_async")

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: dict[str, bool] | None = None,
    ) -> None:
        self.call = function
        self.is_async = inspect.iscoroutinefunction(function)
        name = name if name is not None else function.__name__
        if not _NAME.fullmatch(name):
            raise ValueError(f"expected a name of 1 to 64 of `A-Za-z0-9_.-`, found {name!r}")
        self.declaration: dict[str, Any] = {
            "name": name,
            "description": description or _schema.description(function),
            "input_schema": input_schema or _schema.input_schema(function),
        }
        output = output_schema or _schema.output_schema(function)
        optional = {"title": title, "output_schema": output, "annotations": annotations}
        self.declaration.update(
            (name, value) for name, value in optional.items() if value is not None
        )

    @property
    def name(self) -> str:
        """Name of the tool."""
        return str(self.declaration["name"])


def describe_exception(name: str, error: BaseException) -> dict[str, Any]:
    """Returns the members of `returned` for an exception of a function."""
    if not isinstance(error, ToolFailure):
        log_exception(f"the function `{name}`")
        return {"error": {"type": type(error).__name__, "message": str(error)}}
    failure: dict[str, Any] = {"message": str(error.message)}
    if error.suggestion is not None:
        failure["suggestion"] = str(error.suggestion)
    if error.value is not None:
        failure["value"] = error.value
    return {"failure": failure}
