"""Compiles a program: `await` and `return` work outside functions, and the value of the last
expression is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType
from typing import Any

from cofferdam_code import checks
from cofferdam_code.tools import FILENAME

RESULT = "__result__"
"""Variable of the program's result."""
MAIN = "__program__"
"""Function that contains a program with `return` outside functions."""
CODE_BYTES_MAX = 256 << 10
"""Maximum size of a program."""
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_BLOCKS = ("body", "orelse", "finalbody")


class Rejected(Exception):
    """The program was not run."""

    def __init__(self, problems: list[Any]) -> None:
        super().__init__(problems)
        self.problems = problems


class Compiled:
    """A program that passed the checks."""

    def __init__(self, code: CodeType, is_function: bool) -> None:
        self.code = code
        self.is_function = is_function
        """True if the code defines the function `MAIN`."""


def compiled(code: str, catalog: Any) -> Compiled:
    """Checks and compiles a program.

    Args:
        code: The text.
        catalog: Returns the catalog of tools.

    Raises:
        Rejected: If a check fails.
        SyntaxError: If it is not Python.
        MemoryError: If it is nested too deeply.
    """
    tree: ast.Module = compile(code, FILENAME, "exec", _FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
    returns = "return" in code and any(isinstance(each, ast.Return) for each in _statements(tree.body))
    last = list(_last(tree.body))
    problems = checks.problems(tree, code, {id(each) for _, each in last}, catalog)
    if problems:
        raise Rejected(problems)
    for body, statement in last:
        body[-1] = _kept(statement, returns)
    if returns:
        tree = _function(tree)
    return Compiled(compile(tree, FILENAME, "exec", _FLAGS, dont_inherit=True), returns)


def _kept(statement: ast.Expr, returns: bool) -> ast.stmt:
    if returns:
        return ast.copy_location(ast.Return(statement.value), statement)
    target = ast.copy_location(ast.Name(RESULT, ast.Store()), statement)
    return ast.copy_location(ast.Assign([target], statement.value), statement)


def _last(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], ast.Expr]]:
    """Yields the expressions that a block may end with, and the blocks that they are in."""
    last = body[-1] if body else None
    if isinstance(last, ast.Expr):
        yield body, last
    elif isinstance(last, ast.If):
        yield from _last(last.body)
        yield from _last(last.orelse)
    elif isinstance(last, (ast.With, ast.AsyncWith)):
        yield from _last(last.body)
    elif isinstance(last, (ast.Try, ast.TryStar)):
        yield from _last(last.orelse or last.body)
        for handler in last.handlers:
            yield from _last(handler.body)
    elif isinstance(last, ast.Match):
        for case in last.cases:
            yield from _last(case.body)


def _statements(body: list[Any]) -> Iterator[Any]:
    """Yields the statements of a block and of blocks in it, without those of functions and classes."""
    for each in body:
        yield each
        if not isinstance(each, _SCOPES):
            for name in _BLOCKS:
                yield from _statements(getattr(each, name, ()))
            yield from _statements(getattr(each, "handlers", ()))
            yield from _statements(getattr(each, "cases", ()))


def _function(tree: ast.Module) -> ast.Module:
    """Moves a program into a function whose variables are global."""
    first = 0
    while first < len(tree.body) and _is_future(tree.body[first]):
        first += 1
    body = [_without_annotation(each) for each in tree.body[first:]]
    bound = sorted(set(_names(body)))
    position = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    if bound:
        body.insert(0, ast.Global(bound, **position))
    empty = ast.arguments([], [], None, [], [], None, [])
    function = ast.AsyncFunctionDef(MAIN, empty, body, [], None, **position)
    if hasattr(function, "type_params"):
        function.type_params = []
    return ast.Module([*tree.body[:first], function], [])


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _without_annotation(statement: Any) -> Any:
    # A global variable of a function cannot have an annotation.
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        if statement.value is None:
            return ast.copy_location(ast.Pass(), statement)
        return ast.copy_location(ast.Assign([statement.target], statement.value), statement)
    if not isinstance(statement, _SCOPES):
        for name in _BLOCKS:
            block = getattr(statement, name, None)
            if isinstance(block, list):
                setattr(statement, name, [_without_annotation(each) for each in block])
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            part.body = [_without_annotation(each) for each in part.body]
    return statement


def _names(nodes: list[Any]) -> Iterator[str]:
    """Yields the names that statements bind in their own scope."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.comprehension):
            # The target of a comprehension is not a variable of the program.
            waiting += [node.iter, *node.ifs]
            continue
        yield from checks._bound(node)
        if isinstance(node, _SCOPES):
            waiting += [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ())]
            continue
        waiting += ast.iter_child_nodes(node)
