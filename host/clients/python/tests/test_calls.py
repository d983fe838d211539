"""Tools, calls and results."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest

from cofferdam import Cofferdam, Progress, Question
from conftest import MANY, PLUGINS, TEXT


def test_tools_have_their_declarations(host: Cofferdam) -> None:
    tools = {tool.name: tool for tool in host.tools()}
    tool = tools["word_count"]
    assert tool.title == "Count words"
    assert tool.description == "Counts the words, lines and characters of a text."
    assert tool.input_schema["required"] == ["text"]
    assert tool.output_schema is not None
    assert tool.annotations["read_only"] is True
    assert tool.source == "text"
    assert not tool.needs_approval
    assert tools["file_access_delete_file"].needs_approval
    assert host.unavailable() == []


def test_a_value(host: Cofferdam) -> None:
    result = host.call("word_count", text="to be or not to be")
    assert result.value["words"] == 6
    assert result.text == '{"words":6,"lines":1,"characters":18,"longest":"not"}'
    assert result.contents == [{"type": "json", "json": result.value}]
    assert (result.outcome, result.is_error) == ("ok", False)
    assert result.record is not None
    assert result.record["plugin"]["name"] == "text"


def test_a_string(host: Cofferdam) -> None:
    result = host.call("ok")
    assert (result.value, result.text) == ("ok", "ok")
    assert result.contents == [{"type": "text", "text": "ok"}]


def test_several_items(host: Cofferdam) -> None:
    result = host.call("test_multiple_content_types")
    assert [item["type"] for item in result.contents] == ["text", "blob", "resource"]
    assert result.contents[1]["media_type"] == "image/png"
    assert base64.b64decode(result.contents[1]["data"]).startswith(b"\x89PNG")
    assert result.text.splitlines()[0] == result.contents[0]["text"]


def test_arguments_as_a_mapping_and_as_keywords(host: Cofferdam) -> None:
    mapping = host.call("word_count", {"text": "a bc", "min_length": 2})
    both = host.call("word_count", {"text": "a bc"}, min_length=2)
    assert mapping.value == both.value
    assert mapping.value["words"] == 1


def test_text_of_every_kind(host: Cofferdam) -> None:
    text = 'a "b" \\ \n\t\x00 ,"record":{ ä 語 🦀 \u2028'
    host.call("file_access_save_file", file_name="all.txt", content=text, overwrite=True)
    assert host.call("file_access_read_file", file_name="all.txt").value == text


def test_a_record_is_read_from_any_result(host: Cofferdam) -> None:
    value = host.call("print", bytes=9, stream="stdout").record
    assert value is not None
    assert value["stdout_tail"] == "x" * 9 or len(value["stdout_tail"]) == 9


def test_results_of_many_mebibytes(host: Cofferdam) -> None:
    assert len(host.call("huge_output", bytes=1_000_000).value) == 1_000_000


def test_a_dry_run_with_a_diff(host: Cofferdam) -> None:
    arguments = {"file_name": "dry.txt", "content": "new\n"}
    result = host.call("file_access_save_file", arguments, dry_run=True, diff=True)
    assert result.record is not None
    assert "+new" in result.record["files"][0]["diff"]
    missing = host.call("file_access_read_file", file_name="dry.txt")
    assert "not found" in missing.text


def test_progress_and_messages_of_a_tool(host: Cofferdam, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "cofferdam.tools")
    seen: list[Progress] = []
    host.call("test_tool_with_progress", on_progress=seen.append)
    assert [progress.done for progress in seen] == [0, 50, 100]
    assert seen[-1].total == 100
    host.call("test_tool_with_logging", on_progress=seen.append)
    assert caplog.messages[0].startswith("test_tool_with_logging: ")


def test_an_exception_in_a_callback_cancels_the_call(host: Cofferdam) -> None:
    def fail(progress: Progress) -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        host.call("test_tool_with_progress", on_progress=fail)
    assert host.call("ok").value == "ok"


def test_options_that_are_also_arguments() -> None:
    def wait(timeout: int) -> int:
        return timeout

    with Cofferdam(functions=[wait]) as host:
        with pytest.raises(TypeError, match="`timeout` is an option of `call` and an argument"):
            host.call("wait", timeout=3)
        assert host.call("wait", {"timeout": 3}).value == 3
        assert host.call("wait", {"timeout": 3}, timeout=9).value == 3


def test_questions() -> None:
    asked: list[Question] = []

    def answer(question: Question) -> dict[str, str]:
        asked.append(question)
        return {"username": "ada", "email": "ada@example.com"}

    with Cofferdam(MANY, allow="ask:form", ask=answer) as host:
        text = host.call("test_elicitation", message="Who?").text
        assert "ada@example.com" in text
        assert (asked[0].kind, asked[0].message) == ("form", "Who?")
    with Cofferdam(MANY, allow="ask:form", ask=lambda question: None) as host:
        assert "decline" in host.call("test_elicitation", message="Who?").text


def test_stores(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One\n")
    with Cofferdam(files={"notes": f"{tmp_path}:ro"}, tools="file_access_read_file") as host:
        assert [tool.name for tool in host.tools()] == ["file_access_read_file"]
        assert host.call("file_access_read_file", file_name="a.md").value == "# One\n"
    with Cofferdam({"md": PLUGINS / "markdown.wasm"}, mounts={"data": tmp_path}) as host:
        result = host.call("outline", file="/data/a.md")
        assert "One" in result.text
        assert host.tools()[0].source == "md"


def test_the_host_starts_at_the_first_use() -> None:
    host = Cofferdam(TEXT)
    assert host.call("word_count", text="a").value["words"] == 1
    host.close()
    assert repr(host) == f"<Cofferdam --plugin={TEXT}>"


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), 1e17])
def test_a_timeout_is_checked_before_the_call(timeout: float) -> None:
    with Cofferdam(TEXT) as host:
        with pytest.raises(ValueError, match="expected a timeout above 0"):
            host.call("word_count", text="a", timeout=timeout)
        with pytest.raises(TypeError, match="expected a session that is a string"):
            host.call("word_count", text="a", session=5)  # type: ignore[arg-type]
        assert host.call("word_count", text="a").value["words"] == 1
