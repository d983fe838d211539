"""Hosts for the tests. `COFFERDAM` names the program, `COFFERDAM_PLUGINS` the test plugins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cofferdam import Cofferdam

PLUGINS = Path(os.environ["COFFERDAM_PLUGINS"])
TEXT = PLUGINS / "text.wasm"
CRASH = PLUGINS / "crash.wasm"
MANY = PLUGINS / "mcp_conformance.wasm"


@pytest.fixture(scope="session")
def host() -> Iterator[Cofferdam]:
    """A host that the tests share."""
    with Cofferdam([TEXT, CRASH, MANY], files="memory") as host:
        yield host
