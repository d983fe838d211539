"""Runs a program that a model wrote, with the granted tools as functions.

This module runs once, while the component is made. What it imports is then in the memory with
which every run begins.
"""

from __future__ import annotations

from cofferdam import JsonText, _host, tool, tool_calls
from cofferdam_code import clock, modules, run, warm

clock.install()
run.install()
modules.install()


@tool(name="run_code", title="Run Python", open_world=False)
def run_code(code: str, catalog: str = '{"tools":[]}', seed: str = "0", now: int | None = None) -> JsonText:
    """Runs a Python program that calls tools.

    Args:
        code: The program. The value of its last expression is the result.
        catalog: JSON text with the callable tools.
        seed: Decimal number that seeds random numbers.
        now: Time of the program's clock in milliseconds since 1970.
    """
    return run.program(code, catalog, seed, now, tool_calls)


_host.WARM_UP.append(warm.up)
