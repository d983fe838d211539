"""Values that the host sends: tools, results, and requests to the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._errors import CallCancelled, CallError, RefusedCall, ToolError, ToolFailure


class Tool:
    """A tool of the host."""

    __slots__ = (
        "annotations",
        "description",
        "input_schema",
        "name",
        "needs_approval",
        "output_schema",
        "source",
        "title",
    )

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Any]
    """JSON Schema of the arguments."""
    output_schema: dict[str, Any] | None
    """JSON Schema of the result, if the tool declares one."""
    annotations: dict[str, bool | None]
    """Hints such as `read_only` and `destructive`; `None` if the tool does not say."""
    source: str | None
    """Name of the plugin or server."""
    needs_approval: bool
    """True if each call is approved first. Rules of the host can require it for other calls."""

    def __init__(self, declaration: dict[str, Any]) -> None:
        self.name = declaration["name"]
        self.title = declaration.get("title")
        self.description = declaration.get("description") or ""
        self.input_schema = declaration.get("input_schema") or {"type": "object"}
        self.output_schema = declaration.get("output_schema")
        self.annotations = declaration.get("annotations") or {}
        self.source = declaration.get("source")
        self.needs_approval = bool(declaration.get("needs_approval"))

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, source={self.source!r})"


class UnavailableSource:
    """A plugin or server that cannot be used, with the reason."""

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def __repr__(self) -> str:
        return f"UnavailableSource({self.name!r}, {self.reason!r})"


class Progress:
    """Progress that a tool reports: `done` of `total`, with a message."""

    __slots__ = ("done", "message", "total")

    def __init__(self, done: float, total: float | None, message: str | None) -> None:
        self.done = done
        self.total = total
        self.message = message

    def __repr__(self) -> str:
        return f"Progress({self.done!r}, {self.total!r}, {self.message!r})"


class Approval:
    """A request to approve one call: the name of the tool and its exact arguments."""

    __slots__ = ("arguments", "tool")

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"Approval({self.tool!r}, {self.arguments!r})"


class Question:
    """A question of a tool to the user.

    `kind` is `form`, and `parameters` are those of MCP's `elicitation/create`: `message` and
    `requestedSchema`.
    """

    __slots__ = ("kind", "parameters")

    def __init__(self, kind: str, parameters: dict[str, Any]) -> None:
        self.kind = kind
        self.parameters = parameters

    @property
    def message(self) -> str:
        """Text of the question."""
        return str(self.parameters.get("message", ""))

    def __repr__(self) -> str:
        return f"Question({self.kind!r}, {self.parameters!r})"


class Result:
    """The end of a call.

    `Cofferdam.call` returns only results with the outcome `ok`, unless `check=False`.
    """

    __slots__ = ("_message", "_record_json", "is_error", "outcome", "tool", "value")

    tool: str
    outcome: str
    """`ok`, `failure`, `error`, `cancelled` or `refused`."""
    is_error: bool
    value: Any
    """The result as a model sees it: a string or another JSON value. `None` if the result
    consists of items, which are in `contents`."""

    def __init__(
        self,
        tool: str,
        message: dict[str, Any],
        record_json: bytes | Callable[[], bytes] | None,
    ) -> None:
        self.tool = tool
        self.outcome = message["outcome"]
        self.is_error = bool(message.get("is_error", self.outcome not in ("ok", "cancelled")))
        self.value = message.get("result")
        self._message = message
        self._record_json = record_json

    @property
    def text(self) -> str:
        """The result as a model reads it."""
        text = self._message.get("text")
        if isinstance(text, str):
            return text
        if isinstance(self.value, str):
            return self.value
        if self.outcome == "refused":
            problems = self._message.get("problems") or [self._message]
            return "\n".join(str(problem.get("message")) for problem in problems)
        return "" if self.value is None else _compact(self.value)

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The result as a list of items.

        Each item has a `type`: `text`, `json`, `blob` (`media_type`, `data` in base64),
        `resource` or `link`. A result with one value is one item.
        """
        items: list[dict[str, Any]] | None = self._message.get("contents")
        if items is not None:
            return items
        if self.value is None:
            return []
        if isinstance(self.value, str):
            return [{"type": "text", "text": self.value}]
        return [{"type": "json", "json": self.value}]

    @property
    def record(self) -> dict[str, Any] | None:
        """The call record: facts for the operator, never for a model.

        `None` if the call did not start.
        """
        if self._record_json is not None:
            import json

            record = self._record_json
            self._message["record"] = json.loads(record() if callable(record) else record)
            self._record_json = None
        return self._message.get("record")

    def error(self) -> CallError | None:
        """Returns the error that `Cofferdam.call` raises for this result, if any."""
        if self.outcome == "ok":
            return None
        if self.outcome == "refused":
            return self._refusal()
        if self.outcome == "cancelled":
            return CallCancelled(f"the call of `{self.tool}` was canceled", self)
        if self.outcome == "failure":
            failure = self._message["failure"]
            suggestion, value = failure.get("suggestion"), failure.get("value")
            return ToolFailure(failure["message"], suggestion, value, result=self)
        record = self.record or {}
        error_type, detail = record.get("error_type"), record.get("detail")
        message = f"the call of `{self.tool}` ended in the error `{error_type}`"
        return ToolError(message, error_type, detail, self)

    def _refusal(self) -> RefusedCall:
        message = str(self._message.get("message", "the call was refused"))
        return RefusedCall(
            message,
            str(self._message.get("code", "refused")),
            nearest=self._message.get("nearest"),
            problems=self._message.get("problems"),
            result=self,
        )

    def __repr__(self) -> str:
        return f"Result({self.tool!r}, {self.outcome!r}, {self.value!r})"


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
