"""The caller: an MCP client with its user and its model, or a user at a terminal.

Each kind of question needs a grant, which the manifest of the plugin requests:
`ask = ["form", "sample", "roots"]`. Logging needs none. Many clients cannot answer questions: check
`can_ask` first, and work without an answer if it returns false.

Some clients cannot be asked in the middle of a call. For those, the host ends the call when it
asks, and **runs it again from its beginning** when it has the answers; earlier questions are then
answered at once. Therefore do the same each time up to the last question, and cause side effects
only after it.

    schema = {"type": "object", "properties": {"really": {"type": "boolean"}}, "required": ["really"]}
    match client.ask_form("Delete all 12 notes?", schema):
        case client.Accepted({"really": True}):
            client.log("info", "deleting 12 notes")
        case _:
            return "nothing was deleted"

In a unit test questions are unsupported and log lines are dropped, unless `cofferdam.testing.host`
defines a client.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

from cofferdam import _host
from cofferdam._failure import ToolFailure
from cofferdam._json import dumps, whole

Kind = Literal["form", "sample", "roots"]
"""Kind of question: data from the user, a message of the client's model, or the locations in which
the client works.
"""

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Severity of a log line, as in MCP and syslog."""


@dataclass(frozen=True)
class Form:
    """Asks the user to fill in a form. Never ask for a password or a key: the client shows the
    input and may store it.
    """

    message: str
    """Reason for the question, for the user."""
    schema: dict[str, Any]
    """JSON Schema of an object whose properties are strings, numbers, booleans, or enums of
    strings.
    """
    name: str | None = None
    """Name: 1 to 64 characters from `A-Z a-z 0-9 _ -`, unique within the call. The host chooses one
    if it is missing.
    """


@dataclass(frozen=True)
class Sample:
    """Asks the client's model."""

    parameters: dict[str, Any]
    """The parameters of MCP's `sampling/createMessage`."""
    name: str | None = None
    """Name, as in `Form`."""


@dataclass(frozen=True)
class Roots:
    """Asks for the locations in which the client works."""

    name: str | None = None
    """Name, as in `Form`."""


Question = Union[Form, Sample, Roots]
"""Question for `ask`."""


@dataclass(frozen=True)
class Accepted:
    """The user filled in the form. Check the value, because a client may send anything."""

    form: Any


@dataclass(frozen=True)
class Declined:
    """The user declined."""


@dataclass(frozen=True)
class Cancelled:
    """The user closed the form."""


@dataclass(frozen=True)
class Message:
    """The model's message: the result of MCP's `sampling/createMessage`."""

    message: Any


@dataclass(frozen=True)
class Root:
    """Location in which the client works. It is only a name and grants nothing."""

    uri: str
    """URI, for example `file:///home/user/project`."""
    name: str | None = None
    """Display name."""


@dataclass(frozen=True)
class RootList:
    """Locations in which the client works."""

    roots: list[Root]


Reply = Union[Accepted, Declined, Cancelled]
"""Reply of the user to a form."""

Answer = Union[Accepted, Declined, Cancelled, Message, RootList]
"""Answer to a question. It is untrusted input that the host has not checked."""


class Error(ToolFailure):
    """Error of a question. If it is not caught, it becomes a failure with this message."""


class Unsupported(Error):
    """The question cannot be asked: the client does not support it, there is no client, or the
    caller is another tool.
    """


class Denied(Error):
    """The plugin has no grant for it. The message names the permission and says how to grant it."""


class Invalid(Error):
    """The question is invalid. The message gives the reason."""


class Limit(Error):
    """A limit of the host is reached. The message names it."""


class Failed(Error):
    """The client did not answer, or its answer does not match the question."""


_ERRORS = {each.__name__: each for each in (Unsupported, Denied, Invalid, Limit, Failed)}


class _Nobody:
    """Supports no questions and drops log lines."""

    def can_ask(self, kind: Any) -> bool:
        return False

    def ask(self, questions: list[Any]) -> list[Any]:
        raise Unsupported("the client cannot be asked this")

    def log(self, level: Any, message: str) -> None:
        pass


_bindings: Any = _host.interface("client", _Nobody())


def can_ask(kind: Kind) -> bool:
    """Returns whether questions of this kind are granted and the client can answer them."""
    return bool(_bindings.can_ask(_member("Kind", kind)))


def ask_form(message: str, schema: dict[str, Any]) -> Reply:
    """Asks the user to fill in a form. The parameters are those of `Form`.

    Raises:
        Error: If there is no answer.
    """
    answer = ask(Form(message, schema))
    if not isinstance(answer, (Accepted, Declined, Cancelled)):
        raise _mismatch()
    return answer


def sample(prompt: str, tokens_max: int) -> str:
    """Asks the client's model with one prompt and returns the text of its answer.

    Raises:
        Error: If there is no answer, or no text in it.
    """
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    found = text(sample_with({"messages": [message], "maxTokens": tokens_max}))
    if found is None:
        raise _mismatch()
    return found


def sample_with(parameters: dict[str, Any]) -> Any:
    """Asks the client's model with the parameters of MCP's `sampling/createMessage`, and returns
    its complete result.

    Raises:
        Error: If there is no answer.
    """
    answer = ask(Sample(parameters))
    if not isinstance(answer, Message):
        raise _mismatch()
    return answer.message


def roots() -> list[Root]:
    """Returns the locations in which the client works.

    Raises:
        Error: If there is no answer.
    """
    answer = ask(Roots())
    if not isinstance(answer, RootList):
        raise _mismatch()
    return answer.roots


def ask(question: Question) -> Answer:
    """Asks one question.

    Raises:
        Error: If there is no answer.
    """
    return ask_all([question])[0]


def ask_all(questions: Sequence[Question]) -> list[Answer]:
    """Asks several questions at once and returns the answers in the same order. A call may ask 64
    questions in total.

    Raises:
        Error: If any of the answers is missing.
    """
    try:
        answers = _bindings.ask([_question(each) for each in questions])
    except _host.Err as error:
        kind, said = _host.case(error.value), _host.text(error.value)
        raise _ERRORS.get(kind, Failed)(said or "the client cannot be asked this") from None
    if len(answers) != len(questions):
        raise _mismatch()
    return [_answer(each) for each in answers]


def text(message: Any) -> str | None:
    """Returns the text of a model's message: of its only item, or of several items joined by line
    breaks. Returns `None` if there is no text.
    """
    content = message.get("content") if isinstance(message, dict) else None
    items = content if isinstance(content, list) else [content]
    texts = [item["text"] for item in items if isinstance(item, dict) and isinstance(item.get("text"), str)]
    return "\n".join(texts) if texts else None


def log(level: Level, message: str) -> None:
    """Sends a log line to the client, which may show it to the user. The host drops lines that are
    too long or too many.

    Printed output stays with the host, in the record of the call.
    """
    _bindings.log(_member("LogLevel", level), whole(message))


class LogHandler(logging.Handler):
    """Sends records of `logging` to the client.

    Install it with `logging.getLogger().addHandler(client.LogHandler())`.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a record with the nearest severity that the client knows."""
        try:
            log(_level(record.levelno), self.format(record))
        except Exception:
            self.handleError(record)


def _level(number: int) -> Level:
    if number >= logging.ERROR:
        return "critical" if number >= logging.CRITICAL else "error"
    if number >= logging.INFO:
        return "warning" if number >= logging.WARNING else "info"
    return "debug"


def _member(enum: str, name: str) -> Any:
    """Returns the member of an enum of the bindings. A stand-in takes the name itself."""
    return getattr(_bindings, enum)[name.upper()] if _host.IS_COMPONENT else name


def _question(question: Question) -> Any:
    if not _host.IS_COMPONENT:
        return question
    made = _bindings.Question
    if isinstance(question, Form):
        form = _bindings.Form(whole(question.message), dumps(question.schema))
        return made(question.name, _bindings.Request_Form(form))
    if isinstance(question, Sample):
        return made(question.name, _bindings.Request_Sample(dumps(question.parameters)))
    return made(question.name, _bindings.Request_Roots())


def _answer(answer: Any) -> Answer:
    if isinstance(answer, (Accepted, Declined, Cancelled, Message, RootList)):
        return answer
    case = _host.case(answer)
    if case == "Roots":
        return RootList([Root(root.uri, root.name) for root in answer.value])
    if case in ("Declined", "Cancelled"):
        return Declined() if case == "Declined" else Cancelled()
    try:
        value = json.loads(answer.value)
    except ValueError:
        raise _mismatch() from None
    return Accepted(value) if case == "Accepted" else Message(value)


def _mismatch() -> Failed:
    return Failed("the client's answer does not fit the question")
