"""Hosts for the tests. `COFFERDAM` names the program, `COFFERDAM_PLUGINS` the test plugins.

`COFFERDAM_NATIVE` names the folder of the module `cofferdam_native`. If it is set, the hosts run
in this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cofferdam import Cofferdam

PLUGINS = Path(os.environ["COFFERDAM_PLUGINS"])
TEXT = PLUGINS / "text.wasm"
CRASH = PLUGINS / "crash.wasm"
MANY = PLUGINS / "mcp_conformance.wasm"

SOURCE = Path(__file__).parents[1] / "src"
NATIVE = os.environ.get("COFFERDAM_NATIVE")

if NATIVE is not None:
    sys.path.append(NATIVE)
    assert Cofferdam.__init__.__kwdefaults__ is not None
    Cofferdam.__init__.__kwdefaults__["in_process"] = True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of the other kind of host."""
    other = "native" if NATIVE is None else "process"
    left_out = [item for item in items if item.get_closest_marker(other)]
    items[:] = [item for item in items if not item.get_closest_marker(other)]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def host() -> Iterator[Cofferdam]:
    """A host that the tests share."""
    with Cofferdam([TEXT, CRASH, MANY], files="memory") as host:
        yield host
