"""Calls that need approval."""

from __future__ import annotations

import asyncio

import pytest

from cofferdam import Approval, Approve, Cofferdam, RefusedCall

TOOL = "file_access_delete_file"
ARGUMENTS = {"file_name": "a.txt"}


def yes(request: Approval) -> bool:
    return (request.tool, request.arguments) == (TOOL, ARGUMENTS)


async def later(request: Approval) -> bool:
    await asyncio.sleep(0)
    return yes(request)


def broken(request: Approval) -> bool:
    raise LookupError("no")


def start(approve: Approve | None = None) -> Cofferdam:
    host = Cofferdam(files="memory", approve=approve)
    host.call("file_access_save_file", file_name="a.txt", content="a")
    return host


def is_there(host: Cofferdam) -> bool:
    text = host.call("file_access_read_file", ARGUMENTS, check=False).text
    return text == "a"


@pytest.mark.parametrize("approve", [yes, later])
def test_approved_calls(approve: Approve) -> None:
    with start(approve) as host:
        host.call(TOOL, ARGUMENTS)
        assert not is_there(host)
    with start(approve) as host:
        asyncio.run(host.acall(TOOL, ARGUMENTS))
        assert not is_there(host)


@pytest.mark.parametrize("approve", [lambda request: False, broken])
def test_refused_calls(approve: Approve, caplog: pytest.LogCaptureFixture) -> None:
    with start(approve) as host:
        with pytest.raises(RefusedCall, match=f"the call to `{TOOL}` was not approved") as error:
            host.call(TOOL, ARGUMENTS)
        assert error.value.code == "not_approved"
        with pytest.raises(RefusedCall) as error:
            asyncio.run(host.acall(TOOL, ARGUMENTS))
        assert error.value.code == "not_approved"
        assert is_there(host)


def test_calls_that_nothing_approves() -> None:
    with start() as host:
        with pytest.raises(RefusedCall, match="the program approves no calls") as error:
            host.call(TOOL, ARGUMENTS)
        assert error.value.code == "approval_needed"
        assert is_there(host)


def test_approval_of_one_call() -> None:
    with start(lambda request: False) as host:
        with pytest.raises(RefusedCall):
            host.call(TOOL, ARGUMENTS)
        host.call(TOOL, ARGUMENTS, approve=yes)
        assert not is_there(host)
    with start(yes) as host:
        with pytest.raises(RefusedCall):
            host.call(TOOL, ARGUMENTS, approve=False)
        host.call(TOOL, ARGUMENTS, approve=True)
        assert not is_there(host)


@pytest.mark.parametrize("allow", [True, False])
def test_calls_of_programs_are_approved_with_their_arguments(allow: bool) -> None:
    asked: list[Approval] = []

    def approve(request: Approval) -> bool:
        asked.append(request)
        return allow

    with Cofferdam(files="memory", code="only", approve=approve) as host:
        code = """
            await tools.file_access_save_file({file_name: "a.txt", content: "a"});
            return await tools.file_access_delete_file({file_name: "a.txt"});
        """
        # Approval of the program is not approval of its calls.
        result = host.call("run_code", code=code, check=False, approve=True)
        assert result.outcome == ("ok" if allow else "failure")
        assert [(call.tool, call.arguments) for call in asked] == [(TOOL, {"file_name": "a.txt"})]
