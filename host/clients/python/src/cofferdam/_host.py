"""The host: `Cofferdam`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ._errors import CofferdamError, MessageTooLong
from ._flags import Names, Path, command_line, milliseconds
from ._requests import Approve, Ask, Handlers, OnProgress
from ._results import Result, Tool, UnavailableSource

if TYPE_CHECKING:
    from types import TracebackType

    from ._connection import Connection
    from ._functions import Function
    from ._wire import Message

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class Cofferdam:
    """A host that runs the tools of plugins, each call in a fresh sandbox.

    The process of the host starts with the `with` statement, or at the first use, and ends with
    `close`, or with the program. Threads and event loops can share a host. A forked process
    cannot use it.

    The arguments are the flags of `cofferdam pipe`. A string in place of a list is one item.

    Args:
        plugins: component files, or a mapping of names to files.
        mounts: stores by name, which the plugins see as directories, such as
            `{"data": "./notes:ro"}`.
        config: configuration file.
        files: store for the file-access tools, or a mapping of names to stores.
        allow_http: rules for HTTP requests, such as `"GET https://api.example.com/v1"`.
        allow_env: names of environment variables, or a mapping of names to values.
        secrets: names of secrets, or a mapping of names to environment variables.
        allow: other permissions, such as `"tool:lookup"` or `"ask:form"`.
        limits: limits of each call by name, such as `{"cpu_ms_max": 60000}`.
        timeout: wall-clock limit of each call in seconds.
        memory: memory limit of each call in MiB.
        tools: names of the tools to offer instead of all.
        toolsets: toolsets of the configuration to offer instead of all tools.
        code: `True` or `"both"` offers `run_code` beside the tools, `"only"` instead of them.
        code_language: language of the programs that `run_code` runs.
        record: record calls in the call log.
        approve: function that approves or refuses calls that need approval.
        ask: function that answers questions of tools; it returns the content of the form, or
            `None` to decline.
        functions: functions of the program that plugins and programs of models may call.
        executable: path of the program `cofferdam`.
        in_process: run the host in this process, for calls that take microseconds. It needs the
            extra `native` of the package. A crash of the host ends this process.
        cache_dir: directory for compiled plugins, or `False` for none.
    """

    def __init__(
        self,
        plugins: Path | Iterable[Path] | Mapping[str, Path] = (),
        *,
        mounts: Mapping[str, Path] | None = None,
        config: Path | None = None,
        files: Path | Mapping[str, Path] | None = None,
        allow_http: Names = (),
        allow_env: Names | Mapping[str, str] = (),
        secrets: Names | Mapping[str, str] = (),
        allow: Names = (),
        limits: Mapping[str, int] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        tools: Names | None = None,
        toolsets: Names | None = None,
        code: bool | Literal["both", "only"] = False,
        code_language: Literal["javascript", "python"] | None = None,
        record: bool = False,
        approve: Approve | None = None,
        ask: Ask | None = None,
        functions: Iterable[Callable[..., Any]] = (),
        executable: Path | None = None,
        in_process: bool = False,
        cache_dir: Path | Literal[False] | None = None,
    ) -> None:
        self._flags = command_line(
            {
                "plugins": plugins,
                "mounts": mounts or {},
                "config": config,
                "files": files,
                "allow_http": allow_http,
                "allow_env": allow_env,
                "secrets": secrets,
                "allow": allow,
                "limits": limits or {},
                "timeout": timeout,
                "memory": memory,
                "tools": tools,
                "toolsets": toolsets,
                "code": code,
                "code_language": code_language,
                "record": record,
                "cache_dir": cache_dir,
            }
        )
        self._executable = executable
        self._in_process = in_process
        self._approve = approve
        self._ask = ask
        self._functions: dict[str, Function] = {}
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_closed = False
        self._tools: dict[str, Tool] = {}
        self._unavailable: list[UnavailableSource] = []
        for function in functions:
            self.tool(function)

    @overload
    def tool(self, function: AnyFunction, /) -> AnyFunction: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: dict[str, bool] | None = None,
    ) -> Callable[[AnyFunction], AnyFunction]: ...

    def tool(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: dict[str, bool] | None = None,
    ) -> Any:
        """Offers a function, `async` or not, as a tool. A decorator, with or without arguments.

        The name, the description and the schema of the arguments come from the function's name,
        docstring and type hints, unless they are given. Plugins and programs may call it if they
        are allowed to; `call` may, too. Functions are offered before the host starts.
        """
        from ._functions import Function

        def add(function: AnyFunction) -> AnyFunction:
            self._add_function(
                Function(
                    function,
                    name=name,
                    title=title,
                    description=description,
                    input_schema=input_schema,
                    output_schema=output_schema,
                    annotations=annotations,
                )
            )
            return function

        return add if function is None else add(function)

    def start(self) -> None:
        """Starts the host if it does not run yet. Raises `StartError` if it cannot start."""
        self._connect()

    def close(self) -> None:
        """Ends the host. Calls in progress are canceled. Closing again does nothing."""
        with self._lock:
            self._is_closed = True
            connection = self._connection
        if connection is not None:
            connection.close()

    def tools(self) -> list[Tool]:
        """Returns the tools of the host."""
        self._connect()
        return list(self._tools.values())

    def unavailable(self) -> list[UnavailableSource]:
        """Returns the plugins and servers that cannot be used."""
        self._connect()
        return list(self._unavailable)

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        check: bool = True,
        timeout: float | None = None,
        session: str | None = None,
        dry_run: bool = False,
        diff: bool = False,
        approve: Approve | bool | None = None,
        on_progress: OnProgress | None = None,
        **keywords: Any,
    ) -> Result:
        """Calls a tool and waits for its result. Ctrl-C cancels the call.

        Callbacks and functions of the program that the call needs run in this thread.

        Args:
            tool: name of the tool.
            arguments: arguments of the tool. Those whose names are not names of options can be
                keyword arguments instead.
            check: raise an error unless the outcome is `ok`. With `False`, only errors of the
                host itself are raised, and the result tells the outcome.
            timeout: wall-clock limit of this call in seconds, which never raises that of the host.
            session: name of the conversation that the call belongs to.
            dry_run: report the file changes without making them.
            diff: include line differences in the record.
            approve: approve or refuse this call, instead of the function of the host. `True` is
                not about the calls that a program of a model makes.
            on_progress: function that receives the progress of the call.

        Raises:
            ToolFailure: the tool reported a failure.
            ToolError: a trap, a limit, a denied permission or an invalid result ended the call.
            RefusedCall: the call did not start.
            CallCancelled: the call was canceled, for example by `close`.
            HostExited: the host ended during the call.
        """
        connection = self._connect()
        handlers = self._handlers(approve, on_progress)
        options = _options(timeout, session, dry_run, diff, approve, on_progress, check)
        message = self._message(tool, arguments, keywords, options)
        try:
            end = connection.call(message, handlers)
        except MessageTooLong as error:
            end = error.refusal()
        return _finish(tool, end, handlers, check)

    async def acall(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        check: bool = True,
        timeout: float | None = None,
        session: str | None = None,
        dry_run: bool = False,
        diff: bool = False,
        approve: Approve | bool | None = None,
        on_progress: OnProgress | None = None,
        **keywords: Any,
    ) -> Result:
        """Calls a tool from asyncio. See `call`.

        Canceling the task cancels the call. Callbacks and functions that the call needs run on
        its event loop if they are `async`, and in threads if they are not. `on_progress` runs on
        the event loop.
        """
        from . import _asyncio

        connection = self._connection or await self._connect_async()
        handlers = self._handlers(approve, on_progress)
        options = _options(timeout, session, dry_run, diff, approve, on_progress, check)
        message = self._message(tool, arguments, keywords, options)
        try:
            end = await _asyncio.call(connection, message, handlers)
        except MessageTooLong as error:
            end = error.refusal()
        return _finish(tool, end, handlers, check)

    def __enter__(self) -> Cofferdam:
        self._connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Cofferdam:
        await self._connect_async()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"<Cofferdam {' '.join(self._flags)}>"

    def _add_function(self, function: Function) -> None:
        with self._lock:
            if self._connection is not None:
                raise CofferdamError(
                    f"the host has started without the function `{function.name}`: offer functions "
                    "before the `with` statement and the first call"
                )
            if function.name in self._functions:
                raise CofferdamError(f"there are two functions called `{function.name}`")
            self._functions[function.name] = function

    def _connect(self) -> Connection:
        connection = self._connection
        if connection is not None and not self._is_closed:
            return connection
        with self._lock:
            if self._is_closed:
                raise CofferdamError("the host is closed")
            if self._connection is None:
                self._connection = self._start()
            return self._connection

    async def _connect_async(self) -> Connection:
        import asyncio

        return await asyncio.to_thread(self._connect)

    def _start(self) -> Connection:
        from ._blocking import serve
        from ._connection import PROTOCOL
        from ._executable import find_executable

        hello: Message = {"type": "hello", "protocol": PROTOCOL, "approves": True}
        if self._functions:
            hello["tools"] = [function.declaration for function in self._functions.values()]
        if self._ask is not None:
            hello["answers"] = ["form"]
        handlers = Handlers(self._functions, self._approve, self._ask)
        program = find_executable(self._executable)
        connection: Connection

        def answer(request: Message) -> None:
            serve(connection, request, handlers)

        if self._in_process:
            from ._native import NativeConnection

            connection = NativeConnection(program, self._flags, hello, answer)
        else:
            from ._process import ProcessConnection

            connection = ProcessConnection([program, "pipe", *self._flags], hello, answer)
        ready = connection.ready
        self._tools = {tool["name"]: Tool(tool) for tool in ready["tools"]}
        self._unavailable = [
            UnavailableSource(source["name"], source["reason"])
            for source in ready.get("unavailable", ())
        ]
        # A host that the program forgets ends, too. At exit, `close` also waits for it.
        weakref.finalize(self, connection.disconnect).atexit = False
        return connection

    def _handlers(self, approve: Approve | bool | None, on_progress: OnProgress | None) -> Handlers:
        approve = self._approve if approve is None else approve
        # What a program will do is not known when its call is approved.
        inner = self._approve if isinstance(approve, bool) else approve
        return Handlers(self._functions, approve, self._ask, on_progress, inner)

    def _message(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None,
        keywords: dict[str, Any],
        options: dict[str, Any],
    ) -> Message:
        """Returns the message of a call without its number."""
        if arguments is None:
            self._check_names(tool, options)
        else:
            keywords = {**arguments, **keywords}
        message: Message = {"type": "call", "tool": tool, "arguments": keywords}
        for name, value in options.items():
            if name == "timeout":
                message["timeout_ms"] = milliseconds(value)
            elif name == "on_progress":
                message["progress"] = True
            elif name in ("session", "dry_run", "diff"):
                message[name] = value
        return message

    def _check_names(self, tool: str, options: dict[str, Any]) -> None:
        """Raises `TypeError` if a keyword is an option and could also be an argument."""
        if options and tool in self._tools:
            properties = self._tools[tool].input_schema.get("properties", {})
            for name in options.keys() & properties.keys():
                raise TypeError(
                    f"`{name}` is an option of `call` and an argument of `{tool}`: pass the "
                    f"arguments as a mapping, such as {{{name!r}: …}}"
                )


def _options(
    timeout: float | None,
    session: str | None,
    dry_run: bool,
    diff: bool,
    approve: Approve | bool | None,
    on_progress: OnProgress | None,
    check: bool,
) -> dict[str, Any]:
    """Returns the options of a call that are not the defaults."""
    options: dict[str, Any] = {}
    if timeout is not None:
        options["timeout"] = timeout
    if session is not None:
        if not isinstance(session, str):
            raise TypeError(f"expected a session that is a string, found {session!r}")
        options["session"] = session
    if dry_run:
        options["dry_run"] = True
    if diff:
        options["diff"] = True
    if approve is not None:
        options["approve"] = approve
    if on_progress is not None:
        options["on_progress"] = on_progress
    if not check:
        options["check"] = False
    return options


def _finish(tool: str, end: Message, handlers: Handlers, check: bool) -> Result:
    """Returns the result of a call, or raises its error."""
    if handlers.lacks_approver and end.get("code") == "not_approved":
        message = f"this call of `{tool}` has to be approved, and the program approves no calls"
        end = {**end, "code": "approval_needed", "message": message}
    result = Result(tool, end, end.pop("record_json", None))
    error = result.error() if check else None
    if error is not None:
        raise error
    return result
