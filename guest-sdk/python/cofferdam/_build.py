"""Tells `cofferdam build` which interfaces of the host a plugin's source uses.

    python -m cofferdam._build <folder>

prints their names, one per line. A component imports only these, because users read its imports as
its capabilities. The source is parsed, not run. A module is used if it is mentioned:
`from cofferdam import files`, `import cofferdam.files`, `cofferdam.files.Store`, or the string
`"cofferdam.files"` for imports by name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

INTERFACES = ("call", "client", "files", "secrets", "toolbox")


def main(folder: Path) -> int:
    """Prints the interfaces that the files below the folder use, or the syntax error of a file."""
    found: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            found.update(uses(path.read_bytes()))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            print(f"{path.relative_to(folder)}:{line}: {getattr(error, 'msg', error)}", file=sys.stderr)
            return 1
    for name in sorted(found):
        print(name)
    return 0


def uses(source: bytes | str) -> set[str]:
    """Returns the interfaces that a module mentions.

    Raises:
        SyntaxError: If it is not Python.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    aliases = {"cofferdam", *_aliases(nodes)}
    everything = any(_imports_all(node) for node in nodes)
    return {name for node in nodes for name in _mentions(node, aliases, everything) if name in INTERFACES}


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


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
