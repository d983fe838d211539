"""Runs programs while the component is made, so that a run finds caches filled and code loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cofferdam import _host, tool_calls

_PROGRAMS = (
    "1 + 1",
    "x = [n * n for n in range(10)]\nprint('a', x)\nx",
    "import asyncio\na, b = await asyncio.gather(tools.echo(text='a'), tools.echo(text='b'))\n{'a': a, 'b': b}",
    "async def f(n):\n    await asyncio.sleep(1)\n    return await tools.echo(text=str(n))\n"
    "import asyncio\nasync with asyncio.TaskGroup() as group:\n    t = group.create_task(f(1))\nt.result()",
    "import json, re, statistics, datetime, random, collections, dataclasses\n"
    "@dataclasses.dataclass\nclass A:\n    b: int\n"
    "words = collections.Counter(re.findall(r'\\w+', 'to be or not to be'))\n"
    "print(json.dumps(words), statistics.mean([1, 2]), datetime.datetime.now(), random.random())\n"
    "[A(1), {1, 2}, f'{1.5:.2f}', datetime.date.today()]",
    "try:\n    await tools.fail()\nexcept ToolError as error:\n    print(error.code, error)\nreturn await load('x')",
    "await tools.fail()",
    "def f(x):\n    return x['a']\nf({})",
    "x = (",
    "import requests\nfrom tools import echo\ntools.ecko(text='a')\nawait tools.echo(txt=1)",
    "nmae = 1\nname",
)
_CATALOG = (
    '{"tools":[{"name":"echo","id":"echo","properties":["text"],"required":["text"],"closed":true},'
    '{"name":"fail","id":"fail","properties":[],"required":[],"closed":false}]}'
)


class _Host:
    """Answers calls while there is no host."""

    def __init__(self) -> None:
        self._ended: list[tool_calls.EndedCall] = []
        self._number = 0

    def start(self, name: str, arguments_json: str) -> int:
        self._number += 1
        error = None
        if name == "fail":
            error = tool_calls.Failed("it fails", suggestion="do not call it")
        self._ended.append(tool_calls.EndedCall(self._number, [], error))
        return self._number

    def wait_any(self) -> list[tool_calls.EndedCall]:
        ended, self._ended = self._ended, []
        return ended


def up(call: Callable[[str, str], Any]) -> None:
    """Runs programs of all kinds.

    Raises:
        AssertionError: If the wrong ones fail.
    """

    def run(code: str, seed: str, now: int) -> None:
        call("run_code", json.dumps({"code": code, "catalog": _CATALOG, "seed": seed, "now": now}))

    bindings = tool_calls._bindings
    tool_calls._bindings = _Host()
    failed = []
    try:
        for number, code in enumerate(_PROGRAMS):
            try:
                run(code, "1", 1_700_000_000_000)
            except _host.Err:
                failed.append(number)
    finally:
        tool_calls._bindings = bindings
    assert failed == [6, 7, 8, 9, 10], failed
    # A run begins with an empty module.
    run("None", "0", 0)
