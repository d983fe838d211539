"""Checks of a program before it runs. If one fails, nothing has run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from cofferdam_code import modules, names
from cofferdam_code.tools import HELPERS, Catalog, by_name

_TRIGGERS = ("tools", "import", "async", "store", "load", "describe_tool", "input", "open", "await", "os.")
"""A program with none of these words passes all checks."""
_MARK = re.compile(
    r"(?:…|\.\.\.)\s*(?:\[truncated|\[?\(?\d+ more (?:item|character|line|byte|key|entr|row)\w*[\])]?)|\[truncated",
    re.IGNORECASE,
)
"""A mark that replaces the rest of a shortened value."""
_AWAITED_OF_ASYNCIO = frozenset(("gather", "sleep", "wait", "wait_for"))
_NO_FILES = "there are no files; use tools, or `await store(key, value)` and `await load(key)`"
_BUILTINS = {
    "open": f"`open` is not available: {_NO_FILES}",
    "input": "`input` is not available: no one can answer while the program runs; end the program with a question",
}


class Problem:
    """A reason not to run a program."""

    def __init__(self, node: Any, message: str) -> None:
        """Creates a problem at a node of the syntax tree."""
        self.line: int = node.lineno
        self.offset: int = node.col_offset
        """Offset in the bytes of the line."""
        self.message = message


def problems(tree: ast.Module, code: str, final: set[int], catalog: Any) -> list[Problem]:
    """Returns the problems of a program, in the order of their lines.

    Args:
        tree: The program.
        code: The text of the program.
        final: Ids of the nodes whose value is the result of the program.
        catalog: Returns the catalog.
    """
    if not any(word in code for word in _TRIGGERS):
        return []
    checker = _Checker(list(ast.walk(tree)), final, catalog)
    checker.check()
    found = {(each.line, each.offset, each.message): each for each in checker.found}
    return sorted(found.values(), key=lambda each: (each.line, each.offset))


class _Checker:
    def __init__(self, nodes: list[ast.AST], final: set[int], catalog: Any) -> None:
        self._nodes = nodes
        self._final = final
        self._catalog: Any = catalog
        self._bound: set[str] = {name for node in nodes for name in _bound(node)}
        self._async = {node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef)}
        self._guarded: set[int] = set()
        self._has_tools = "tools" not in self._bound
        self.found: list[Problem] = []

    def check(self) -> None:
        for node in self._nodes:
            check = _CHECKS.get(type(node))
            if check is not None:
                check(self, node)

    def _add(self, node: ast.AST, message: str) -> None:
        self.found.append(Problem(node, message))

    # Imports

    def _try(self, node: ast.Try) -> None:
        # The program is prepared for a missing module.
        if any(_catches_imports(handler.type) for handler in node.handlers):
            self._guarded.update(id(each) for each in node.body)

    def _import(self, node: ast.Import) -> None:
        for each in node.names:
            if id(node) not in self._guarded:
                self._module(each, each.name)

    def _import_from(self, node: ast.ImportFrom) -> None:
        if node.level:
            self._add(node, "a program has no modules of its own; remove the relative import")
            return
        base = node.module or ""
        if id(node) not in self._guarded and self._module(node, base):
            for each in node.names:
                full = f"{base}.{each.name}"
                if modules.advice(full) is not None and full not in modules.available:
                    self._module(each, full)
                elif base == "os" and each.name in modules.SYSTEM_CALLS:
                    self._add(each, self._system(each.name))

    def _module(self, node: ast.AST, name: str) -> bool:
        """Adds a problem unless a module can be imported. Returns whether it can."""
        if name in modules.available:
            return True
        top = name.partition(".")[0]
        if top in modules.PHANTOMS:
            self._add(node, f"there is no module `{name}`: `tools` is already defined; do not import it")
            return False
        advice = modules.advice(name)
        if advice == "":
            advice = f"use `await tools.…(…)`; {self._catalog().granted()}"
        elif advice is None:
            near = names.nearest(name, modules.available)
            advice = f"did you mean `{near}`?" if near else f"only parts of the standard library are: {_importable()}"
        self._add(node, f"`{name}` is not available: {advice}")
        return False

    def _system(self, name: str) -> str:
        return f"`os.{name}` is not available: there are no other programs to run; {self._catalog().granted()}"

    # Tools

    def _attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.value, ast.Name):
            return
        if node.value.id == "tools" and self._has_tools:
            if node.attr not in self._catalog().by_id and node.attr[:2] != "__":
                self._add(node, self._unknown(node.attr))
        elif node.value.id == "os" and node.attr in modules.SYSTEM_CALLS:
            self._add(node, self._system(node.attr))

    def _unknown(self, name: str) -> str:
        helper = name if name in HELPERS else {"search": "search_tools", "describe": "describe_tool"}.get(name)
        if helper is not None:
            return f"unknown tool `tools.{name}`; write `await {helper}(…)`"
        message: str = self._catalog().unknown(name)
        return message

    def _call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in _BUILTINS and function.id not in self._bound:
                self._add(node, _BUILTINS[function.id])
            elif function.id == "__import__" and node.args and isinstance(node.args[0], ast.Constant):
                self._module(node, str(node.args[0].value))
        elif isinstance(function, ast.Attribute) and function.attr == "import_module":
            if node.args and isinstance(node.args[0], ast.Constant):
                self._module(node, str(node.args[0].value))
        name = self._tool(node)
        if name is None:
            return
        for each in (*node.args, *node.keywords):
            self._marks(each)
        entry = self._catalog().by_id.get(name)
        if entry is not None:
            self._arguments(node, entry)

    def _tool(self, node: ast.AST) -> str | None:
        """Returns the identifier of the tool that a node calls."""
        if not isinstance(node, ast.Call) or not self._has_tools:
            return None
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return function.attr if function.value.id == "tools" else None
        return None

    def _arguments(self, node: ast.Call, entry: dict[str, Any]) -> None:
        given: dict[str, ast.AST] = {}
        complete = True
        for argument in node.args:
            if isinstance(argument, ast.Dict) and len(node.args) == 1:
                for key in argument.keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        given[key.value] = key
                    else:
                        complete = False
            else:
                complete = False
                if isinstance(argument, (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple)) or len(node.args) > 1:
                    self._add(argument, by_name(entry))
                    break
        for keyword in node.keywords:
            if keyword.arg is None:
                complete = False
            else:
                given[keyword.arg] = keyword
        known = entry.get("properties") or []
        tool = f"`tools.{entry['id']}`"
        if complete:
            missing = [name for name in entry.get("required") or [] if name not in given]
            if missing:
                shown = ", ".join(f"`{name}`" for name in missing)
                self._add(node, f"missing {_arguments(missing)} {shown} of {tool}")
        if entry.get("closed"):
            for name, node in given.items():
                if name not in known:
                    near = names.nearest(name, known)
                    hint = f"did you mean `{near}`?" if near else f"it accepts: {', '.join(known) or 'no arguments'}"
                    self._add(node, f"{tool} has no argument `{name}`; {hint}")

    def _marks(self, node: ast.AST) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Constant):
                self._mark(each)

    def _mark(self, node: ast.Constant) -> None:
        found = _MARK.search(node.value) if isinstance(node.value, str) else None
        if found:
            self._add(
                node,
                f"this string is a shortened copy: it contains the truncation mark `{found[0]}`; use the whole value "
                'with `await load("result_1")` or call the tool again in the program',
            )

    def _assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Constant):
            self._mark(node.value)

    # Calls whose result is dropped

    def _expression(self, node: ast.Expr) -> None:
        call = node.value
        if id(node) in self._final or not isinstance(call, ast.Call):
            return
        name = self._coroutine(call)
        if name is not None:
            self._add(call, f"un-awaited call of `{name}`; write `await {name}(…)`")

    def _coroutine(self, call: ast.Call) -> str | None:
        tool = self._tool(call)
        if tool is not None:
            return f"tools.{tool}"
        function = call.func
        if isinstance(function, ast.Name):
            is_helper = function.id in HELPERS and function.id not in self._bound
            return function.id if is_helper or function.id in self._async else None
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id == "asyncio" and function.attr in _AWAITED_OF_ASYNCIO:
                return f"asyncio.{function.attr}"
        return None


_CHECKS: dict[type, Any] = {
    ast.Try: _Checker._try,
    ast.Import: _Checker._import,
    ast.ImportFrom: _Checker._import_from,
    ast.Attribute: _Checker._attribute,
    ast.Call: _Checker._call,
    ast.Assign: _Checker._assign,
    ast.Expr: _Checker._expression,
}


def _arguments(names: list[str]) -> str:
    return "argument" if len(names) == 1 else "arguments"


def _importable() -> str:
    return ", ".join(modules.importable())


def _catches_imports(node: ast.expr | None) -> bool:
    if node is None:
        return True
    caught = node.elts if isinstance(node, ast.Tuple) else [node]
    names = {each.id for each in caught if isinstance(each, ast.Name)}
    return bool(names & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _bound(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node binds."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        # An import of `tools` is a problem of its own, and does not replace the tools.
        if node.name.partition(".")[0] not in modules.PHANTOMS:
            yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        if node.name:
            yield node.name
