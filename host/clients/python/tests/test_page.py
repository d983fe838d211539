"""Runs the examples of `docs/python.md`, and compares what they print with the blocks below."""

from __future__ import annotations

import asyncio
import builtins
import re
import textwrap
from pathlib import Path

import pytest

from conftest import CRASH, PLUGINS, TEXT

PAGE = Path(__file__).parents[4] / "docs/python.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
EXAMPLES = [
    pytest.param(
        match[1],
        match[2],
        marks=pytest.mark.native if "in_process" in match[1] else pytest.mark.process,
    )
    for match in BLOCK.finditer(PAGE.read_text())
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize(("program", "output"), EXAMPLES)
def test_example(
    program: str,
    output: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for plugin in (TEXT, CRASH, PLUGINS / "markdown.wasm"):
        (tmp_path / plugin.name).symlink_to(plugin)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/plan.md").write_text("# Plan\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "input", lambda prompt: "y")
    # Pydantic AI's `run_sync` uses the current loop and does not close it.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        exec(compile(program, "docs/python.md", "exec"), {"__name__": "example"})
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    if output is not None:
        assert textwrap.dedent(capsys.readouterr().out).strip() == output.strip()
