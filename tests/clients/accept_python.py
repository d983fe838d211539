"""The official Python SDK against `cofferdam serve`: run by `cargo xtask mcp clients`."""

import math

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from watch import CALLS_AT_ONCE, PLAN, check, check_computes, check_idle, cpu_seconds, server_pid, swap_plugin


def server(http):
    if "url" in PLAN:
        return streamable_http_client(PLAN["url"], http_client=http)
    command, *arguments = PLAN["command"]
    return StdioServerParameters(command=command, args=arguments)


async def names(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return {tool.name: tool for tool in tools}


async def results(client):
    tools = await names(client)
    check({"echo", "refuse", "count", "compute", "word_count"} <= tools.keys(), f"tools: {list(tools)}")
    check(tools["echo"].output_schema["required"] == ["echoed"], "the output schema is published")
    check(tools["echo"].input_schema["required"] == ["message"], "the input schema is published")

    echoed = await client.call_tool("echo", {"message": "grüße\n", "number": 7})
    value = {"echoed": {"message": "grüße\n", "number": 7}}
    check(not echoed.is_error and echoed.structured_content == value, f"structured: {echoed}")
    check(echoed.content[0].type == "text", "a structured result is text as well")
    counted = await client.call_tool("word_count", {"text": "to be or not to be"})
    check(counted.structured_content["words"] == 6, f"an object without a schema: {counted}")

    refused = await client.call_tool("refuse", {})
    check(refused.is_error and refused.structured_content is None, f"a failure: {refused}")
    check("there is no such row" in refused.content[0].text, f"a failure says why: {refused}")
    trapped = await client.call_tool("divide_by_zero", {})
    check(trapped.is_error and "Trap.IntegerDivideByZero" in trapped.content[0].text, f"a trap: {trapped}")
    wrong = await client.call_tool("echo", {"number": 1})
    check(wrong.is_error and "message" in wrong.content[0].text, f"bad arguments: {wrong}")
    unknown = await client.call_tool("nobody", {})
    check(unknown.is_error and unknown.content[0].text == "Tool nobody not found", f"unknown: {unknown}")


async def at_once(client):
    async def one(number):
        result = await client.call_tool("echo", {"message": f"call {number}", "number": number})
        echoed = result.structured_content["echoed"]
        check(echoed == {"message": f"call {number}", "number": number}, f"answers are mixed up: {result}")

    async with anyio.create_task_group() as group:
        for number in range(CALLS_AT_ONCE):
            group.start_soon(one, number)


async def progress(client):
    seen = []

    async def on_progress(done, total, message):
        seen.append((done, total, message))

    result = await client.call_tool("count", {"steps": 5, "pause_ms": 150}, progress_callback=on_progress)
    check(result.content[0].text == "counted to 5", f"counted: {result}")
    check(len(seen) >= 2, f"progress: {seen}")
    check([done for done, _, _ in seen] == sorted({done for done, _, _ in seen}), f"progress rises: {seen}")
    check(all(total == 5 and message.startswith("step ") for _, total, message in seen), f"progress: {seen}")


async def cancelled(client, pid):
    async def compute():
        await client.call_tool("compute", {})

    before = cpu_seconds(pid)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(compute)
        while cpu_seconds(pid) - before < 0.5:
            await anyio.sleep(0.05)
        await anyio.to_thread.run_sync(check_computes, pid)
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(check_idle, pid)
    result = await client.call_tool("echo", {"message": "still here"})
    check(not result.is_error, f"the server goes on: {result}")


async def list_changes(client, changed):
    """Waits for the list after the swap. The server may announce its start as well, so one announcement is not enough."""
    check("schema" not in await names(client), "not there before")
    if client.protocol_version >= "2026-07-28":
        async with client.listen(tools_list_changed=True) as subscription:
            swap_plugin()
            async for _event in subscription:
                if "schema" in await names(client):
                    break
    else:
        swap_plugin()
        async for _event in changed:
            if "schema" in await names(client):
                break
    tools = await names(client)
    check("schema" in tools and "word_count" not in tools, f"after the swap: {list(tools)}")


async def main():
    announce, changed = anyio.create_memory_object_stream(math.inf)

    async def on_message(message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            announce.send_nowait(message)

    headers = {"Authorization": f"Bearer {PLAN['token']}"} if "token" in PLAN else {}
    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(60)) as http:
        with anyio.fail_after(240):
            async with Client(server(http), mode=PLAN["mode"], message_handler=on_message) as client:
                wanted = "2025-11-25" if PLAN["mode"] == "legacy" else "2026-07-28"
                check(client.protocol_version == wanted, f"revision {client.protocol_version}")
                await results(client)
                await at_once(client)
                await progress(client)
                await cancelled(client, server_pid())
                await list_changes(client, changed)


anyio.run(main)
