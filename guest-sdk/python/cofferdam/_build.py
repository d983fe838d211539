"""Tells `cofferdam build` which interfaces of the host a plugin's source uses.

    python -m cofferdam._build <folder> [<packages>]

prints their names, one per line. A component imports only these, because users read its imports as
its capabilities. The source is parsed, not run. A module is used if it is mentioned:
`from cofferdam import files`, `import cofferdam.files`, `cofferdam.files.Store`, or the string
`"cofferdam.files"` for imports by name.

HTTP is used if the source imports a module that sends requests, such as `urllib.request`, or a
package among `<packages>` that imports one when it is imported itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

INTERFACES = ("call", "client", "files", "secrets", "tool_calls", "toolbox")
HTTP_MODULES = frozenset(
    ("http.client", "httpcore", "httpx", "requests", "urllib.request", "urllib.robotparser", "urllib3", "xmlrpc.client")
)


def main(folder: Path, packages: Path | None = None) -> int:
    """Prints the interfaces that the files below the folder use, or the syntax error of a file."""
    # Every tool can fail.
    found = {"errors"}
    modules: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            print(f"{path.relative_to(folder)}:{line}: {getattr(error, 'msg', error)}", file=sys.stderr)
            return 1
        found.update(uses(tree))
        modules.update(_modules(ast.walk(tree), _package(path, folder)))
    if packages is not None:
        modules.update(_imported_by_packages(packages, modules))
    if any(_is_http(module) for module in modules):
        found.add("http")
    for name in sorted(found):
        # The names of interfaces in WIT have hyphens.
        print(name.replace("_", "-"))
    return 0


def uses(source: bytes | str | ast.Module) -> set[str]:
    """Returns the interfaces that a module mentions by their modules in this package.

    Raises:
        SyntaxError: If it is not Python.
    """
    nodes = list(ast.walk(source if isinstance(source, ast.Module) else ast.parse(source)))
    aliases = {"cofferdam", *_aliases(nodes)}
    everything = any(_imports_all(node) for node in nodes)
    return {name for node in nodes for name in _mentions(node, aliases, everything) if name in INTERFACES}


def sends_requests(source: bytes | str) -> bool:
    """Returns whether a module imports one that sends requests over HTTP.

    Raises:
        SyntaxError: If it is not Python.
    """
    return any(_is_http(module) for module in _modules(ast.walk(ast.parse(source)), ""))


def _aliases(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.asname for each in node.names if each.name == "cofferdam" and each.asname)


def _imports_all(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "cofferdam" and node.names[0].name == "*"


def _mentions(node: ast.AST, aliases: set[str], everything: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (_interface(each.name) for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module == "cofferdam":
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield _interface(node.module or "")
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield _interface(node.value)
    elif isinstance(node, ast.Name) and everything:
        yield node.id


def _interface(module: str) -> str:
    """Returns the module of this package in a dotted name: `files` for `cofferdam.files.x`."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "cofferdam" else ""


def _is_http(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in HTTP_MODULES)


def _modules(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Yields the dotted names that import statements and imports by name may import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _resolved(node, package)
            yield base
            yield from (f"{base}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Call) and node.args:
            function, name = node.func, node.args[0]
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if called in ("import_module", "__import__") and isinstance(name, ast.Constant):
                yield str(name.value)


def _resolved(node: ast.ImportFrom, package: str) -> str:
    """Returns the absolute name of the module that an import is from."""
    if not node.level:
        return node.module or ""
    parents = package.split(".")[: len(package.split(".")) - (node.level - 1)]
    return ".".join([*parents, node.module] if node.module else parents)


def _imported_by_packages(folder: Path, modules: Iterable[str]) -> set[str]:
    """Returns the modules that packages import while these modules are imported from a folder."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen or _is_http(name):
            seen.add(name)
            continue
        seen.add(name)
        parent, _, _ = name.rpartition(".")
        if parent:
            waiting.append(parent)
        path = folder.joinpath(*name.split("."))
        file = next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file()), None)
        if file is None:
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            # It may be written for the Python of the component.
            continue
        waiting.extend(_modules(_at_import(tree), _package(file, folder)))
    return seen


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes that run when a module is imported: all except those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or _is_for_types(child):
            continue
        yield child
        yield from _at_import(child)


def _is_for_types(node: ast.AST) -> bool:
    """Returns whether a node is an `if TYPE_CHECKING:`."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _package(file: Path, folder: Path) -> str:
    """Returns the dotted name of the package that a file belongs to."""
    return ".".join(file.relative_to(folder).parent.parts)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
