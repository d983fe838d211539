"""The one who made the call: an MCP client with its person and its model, or a person at a terminal.

Each kind of question needs a grant, which the manifest of the plugin asks for: `ask = ["form", "sample", "roots"]`. Logging needs
none. Many clients can be asked nothing: look first with `can_ask`, and do without.

Some clients cannot be asked in the middle of a call. For those the host ends the call when it asks, and **runs it again from its
beginning** when the answers are there; earlier questions are then answered at once. So do the same up to the last question each
time, and act afterwards.

    schema = {"type": "object", "properties": {"really": {"type": "boolean"}}, "required": ["really"]}
    match client.ask_form("Delete all 12 notes?", schema):
        case client.Accepted({"really": True}):
            client.log("info", "deleting 12 notes")
        case _:
            return "nothing was deleted"

In a unit test nobody can be asked and nobody listens, unless `cofferdam.testing.host` says otherwise.
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
"""What can be asked for: data from a person, a message of the client's model, the places that the client works in."""

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""How much a line matters, as in MCP and syslog."""


@dataclass(frozen=True)
class Form:
    """Asks a person to fill in a form. Never ask for a password or a key: the client shows and may keep what is typed."""

    message: str
    """Why this is asked, for the person."""
    schema: dict[str, Any]
    """A JSON Schema of an object whose properties are texts, numbers, truth values, or choices of texts."""
    name: str | None = None
    """1 to 64 characters out of `A-Z a-z 0-9 _ -`, unique within the call. The host finds one where there is none."""


@dataclass(frozen=True)
class Sample:
    """Asks the client's model."""

    parameters: dict[str, Any]
    """The parameters of MCP's `sampling/createMessage`."""
    name: str | None = None
    """As for `Form`."""


@dataclass(frozen=True)
class Roots:
    """Asks where the client works."""

    name: str | None = None
    """As for `Form`."""


Question = Union[Form, Sample, Roots]
"""A question, for `ask`."""


@dataclass(frozen=True)
class Accepted:
    """The person filled in the form. Check what is there: a client may send anything."""

    form: Any


@dataclass(frozen=True)
class Declined:
    """The person said no."""


@dataclass(frozen=True)
class Cancelled:
    """The person closed the form."""


@dataclass(frozen=True)
class Message:
    """The model's message: the result of MCP's `sampling/createMessage`."""

    message: Any


@dataclass(frozen=True)
class Root:
    """A place that the client works in. It is a name, and grants nothing."""

    uri: str
    """For example `file:///home/user/project`."""
    name: str | None = None
    """What to call it."""


@dataclass(frozen=True)
class Places:
    """Where the client works."""

    roots: list[Root]


Reply = Union[Accepted, Declined, Cancelled]
"""What a person made of a form."""

Answer = Union[Accepted, Declined, Cancelled, Message, Places]
"""An answer. It comes from outside and nothing has checked it."""


class Error(ToolFailure):
    """There are no answers. Uncaught it is a failure with this text."""


class Unsupported(Error):
    """Nobody can be asked this: the client has no such thing, there is no client, or the caller is another tool."""


class Denied(Error):
    """The plugin has no grant for it. The text names the permission and says how to grant it."""


class Invalid(Error):
    """The question is not one. The text says why."""


class Limit(Error):
    """A limit of the host. The text says which."""


class Failed(Error):
    """The client was asked and did not answer, or not with an answer to the question."""


_ERRORS = {each.__name__: each for each in (Unsupported, Denied, Invalid, Limit, Failed)}


class _Nobody:
    """Cannot be asked and does not listen."""

    def can_ask(self, kind: Any) -> bool:
        return False

    def ask(self, questions: list[Any]) -> list[Any]:
        raise Unsupported("the client cannot be asked this")

    def log(self, level: Any, message: str) -> None:
        pass


_bindings: Any = _host.interface("client", _Nobody())


def can_ask(kind: Kind) -> bool:
    """Whether questions of this kind are granted and the client can answer them."""
    return bool(_bindings.can_ask(_member("Kind", kind)))


def ask_form(message: str, schema: dict[str, Any]) -> Reply:
    """Asks a person to fill in a form. The parameters are those of `Form`.

    Raises:
        Error: If there is no answer.
    """
    answer = ask(Form(message, schema))
    if not isinstance(answer, (Accepted, Declined, Cancelled)):
        raise _mismatch()
    return answer


def sample(prompt: str, tokens_max: int) -> str:
    """Asks the client's model one thing and gives the text of its answer.

    Raises:
        Error: If there is no answer, or no text in it.
    """
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    found = text(sample_with({"messages": [message], "maxTokens": tokens_max}))
    if found is None:
        raise _mismatch()
    return found


def sample_with(parameters: dict[str, Any]) -> Any:
    """Asks the client's model with all that MCP's `sampling/createMessage` has, and gives the whole result.

    Raises:
        Error: If there is no answer.
    """
    answer = ask(Sample(parameters))
    if not isinstance(answer, Message):
        raise _mismatch()
    return answer.message


def roots() -> list[Root]:
    """The places that the client works in.

    Raises:
        Error: If there is no answer.
    """
    answer = ask(Roots())
    if not isinstance(answer, Places):
        raise _mismatch()
    return answer.roots


def ask(question: Question) -> Answer:
    """Asks one question.

    Raises:
        Error: If there is no answer.
    """
    return ask_all([question])[0]


def ask_all(questions: Sequence[Question]) -> list[Answer]:
    """Asks several questions at once and gives the answers in the same order. A call may ask 64 questions in all.

    Raises:
        Error: If one is not answered; then none of the answers is there.
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
    """The text of a model's message: of its one item, or of several items together. `None` if there is no text."""
    content = message.get("content") if isinstance(message, dict) else None
    items = content if isinstance(content, list) else [content]
    texts = [item["text"] for item in items if isinstance(item, dict) and isinstance(item.get("text"), str)]
    return "\n".join(texts) if texts else None


def log(level: Level, message: str) -> None:
    """Says something to the client, which may show it to a person. The host leaves out what is too long or too much.

    What is printed stays with the host, in the record of the call.
    """
    _bindings.log(_member("LogLevel", level), whole(message))


class LogHandler(logging.Handler):
    """Sends records of `logging` to the client: `logging.getLogger().addHandler(client.LogHandler())`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a record with the nearest level that the client knows."""
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
    """The member of an enum of the bindings; a stand-in takes the name itself."""
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
    if isinstance(answer, (Accepted, Declined, Cancelled, Message, Places)):
        return answer
    case = _host.case(answer)
    if case == "Roots":
        return Places([Root(root.uri, root.name) for root in answer.value])
    if case in ("Declined", "Cancelled"):
        return Declined() if case == "Declined" else Cancelled()
    try:
        value = json.loads(answer.value)
    except ValueError:
        raise _mismatch() from None
    return Accepted(value) if case == "Accepted" else Message(value)


def _mismatch() -> Failed:
    return Failed("the client's answer is none to the question")
