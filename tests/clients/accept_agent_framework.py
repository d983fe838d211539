"""The MCP client of Microsoft's Agent Framework against `cofferdam serve`: run by `cargo xtask mcp clients`."""

import asyncio

from agent_framework import MCPStdioTool, MCPStreamableHTTPTool
from agent_framework.exceptions import ToolException

from watch import CALLS_AT_ONCE, PLAN, check, check_computes, check_idle, cpu_seconds, server_pid, swap_plugin


def server():
    if "url" in PLAN:
        headers = {"Authorization": f"Bearer {PLAN['token']}"}
        return MCPStreamableHTTPTool("tools", PLAN["url"], static_headers=headers, load_prompts=False)
    command, *arguments = PLAN["command"]
    return MCPStdioTool("tools", command, args=arguments, load_prompts=False)


async def text(tool, name, **arguments):
    result = await tool.call_tool(name, **arguments)
    return result if isinstance(result, str) else "".join(part.text for part in result)


async def error(tool, name, **arguments):
    try:
        return f"no error: {await text(tool, name, **arguments)}"
    except ToolException as failure:
        return str(failure)


async def cancelled(tool, pid):
    before = cpu_seconds(pid)
    calls = [asyncio.create_task(tool.call_tool("compute")) for _ in range(3)]
    while cpu_seconds(pid) - before < 0.5:
        await asyncio.sleep(0.05)
    await asyncio.to_thread(check_computes, pid)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await asyncio.to_thread(check_idle, pid)


async def main():
    async with asyncio.timeout(240), server() as tool:
        functions = {function.name: function for function in tool.functions}
        check({"echo", "refuse", "count", "compute", "word_count"} <= functions.keys(), f"tools: {list(functions)}")
        check("message" in functions["echo"].parameters()["properties"], "the schema arrives")

        value = '{"echoed":{"message":"hi","number":7}}'
        check((await text(tool, "echo", message="hi", number=7)).replace(" ", "") == value, "a structured result")
        check(await text(tool, "count", steps=2, pause_ms=10) == "counted to 2", "a text")
        check("there is no such row" in await error(tool, "refuse"), "a failure")
        check("Trap.IntegerDivideByZero" in await error(tool, "divide_by_zero"), "a trap")
        check("message" in await error(tool, "echo", number=1), "bad arguments")

        async def one(number):
            return await text(tool, "echo", message="hi", number=number)

        answers = await asyncio.gather(*(one(number) for number in range(CALLS_AT_ONCE)))
        for number, answer in enumerate(answers):
            check(f'"number":{number}}}' in answer.replace(" ", ""), f"answers are mixed up: {answers}")

        await cancelled(tool, server_pid())
        check("hi" in await text(tool, "echo", message="hi"), "the server goes on")

        swap_plugin()
        for _ in range(300):
            if "schema" in {function.name for function in tool.functions}:
                break
            await asyncio.sleep(0.1)
        check("schema" in {function.name for function in tool.functions}, "the list is loaded again by itself")


asyncio.run(main())
