"""Makes calls in several ways and times them, for the benchmark `clients`.

Reads lines `NAME COUNT` from standard input and answers each with the seconds that COUNT calls
took. Takes the path of the plugin with the tool `ok` as its argument, and the folder of the module
`cofferdam_native` as the second one.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable

from cofferdam import Cofferdam

SERVER = """
from mcp.server import MCPServer

server = MCPServer("bench")


@server.tool()
def ok() -> str:
    return "ok"


server.run("stdio")
"""

CALL = b'{"type":"call","id":1,"tool":"ok","arguments":{}}\n'


def exchange_lines(command: list[str], first: bytes = CALL) -> Callable[[int], float]:
    """Returns a timer of lines to a process, each with one line as the answer."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    to, back = process.stdin.fileno(), process.stdout.fileno()

    def exchange(line: bytes) -> None:
        os.write(to, line)
        while not os.read(back, 65536).endswith(b"\n"):
            pass

    def measure(count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            exchange(CALL)
        return time.perf_counter() - started

    exchange(first)
    return measure


def exchange_calls(plugin: str) -> Callable[[int], float]:
    """Returns a timer of calls as lines that are written and read without the package."""
    command = [os.environ["COFFERDAM"], "pipe", "--plugin", plugin]
    return exchange_lines(command, b'{"type":"hello","protocol":1}\n')


def call_cofferdam(plugin: str, in_process: bool) -> Callable[[int], float]:
    """Returns a timer of calls through the package."""
    host = Cofferdam(plugins=[plugin], in_process=in_process)
    host.__enter__()

    def measure(count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            host.call("ok")
        return time.perf_counter() - started

    return measure


def call_mcp() -> Callable[[int], float]:
    """Returns a timer of calls through the official MCP client to a server of the same package."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def calls(count: int) -> float:
        server = StdioServerParameters(command=sys.executable, args=["-c", SERVER])
        async with stdio_client(server) as (reading, writing):
            async with ClientSession(reading, writing) as session:
                await session.initialize()
                await session.call_tool("ok", {})
                started = time.perf_counter()
                for _ in range(count):
                    await session.call_tool("ok", {})
                return time.perf_counter() - started

    return lambda count: asyncio.run(calls(count))


def main() -> None:
    timers: dict[str, Callable[[int], float]] = {}
    makers = {
        "cat": lambda: exchange_lines(["cat"]),
        "lines": lambda: exchange_calls(sys.argv[1]),
        "cofferdam": lambda: call_cofferdam(sys.argv[1], in_process=False),
        "native": lambda: call_cofferdam(sys.argv[1], in_process=True),
        "mcp": call_mcp,
    }
    sys.path.append(sys.argv[2])
    for line in sys.stdin:
        name, count = line.split()
        if name not in timers:
            timers[name] = makers[name]()
            timers[name](10)
        print(timers[name](int(count)), flush=True)


main()
