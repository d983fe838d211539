"""Tests use of the host: with the default stand-ins, and with `testing.host`."""

import logging
import math
import unittest
from types import SimpleNamespace
from typing import Any

from cofferdam import ToolFailure, call, client, files, secrets, testing, tool, tool_calls, toolbox


@tool
def double(n: int) -> int:
    """Doubles a number."""
    if n > 9:
        raise ToolFailure("too large", suggestion="pass 9 or less", transient=True)
    return 2 * n


class Nobody(unittest.TestCase):
    def test_nothing_is_granted(self) -> None:
        self.assertEqual((call.id(), call.session(), call.time_left(), call.cancelled()), ("", None, math.inf, False))
        call.progress(1)
        client.log("info", "x")
        self.assertFalse(client.can_ask("form"))
        with self.assertRaisesRegex(client.Unsupported, "cannot be asked"):
            client.roots()
        with self.assertRaisesRegex(secrets.AccessDenied, "the secret `x` is not granted"):
            secrets.get("x")
        with self.assertRaisesRegex(toolbox.UnknownTool, "no tool `x` was granted"):
            toolbox.call("x")
        with self.assertRaisesRegex(tool_calls.UnknownTool, "no tool `x` was granted"):
            tool_calls.call_all([("x", {})])
        self.assertEqual((toolbox.granted(), files.granted()), ([], []))
        with self.assertRaisesRegex(files.UnknownStore, "no store `data` was granted"):
            files.Store("data").create("a", "b")


class Granted(unittest.TestCase):
    def test_call_and_client(self) -> None:
        answers: list[client.Answer] = [
            client.Accepted({"really": True}),
            client.Declined(),
            client.Message({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}),
            client.RootList([client.Root("file:///a")]),
            client.Cancelled(),
        ]
        with testing.host(answers=answers, session="s", time_left=2, cancelled=True) as host:
            self.assertEqual((call.id(), call.session(), call.time_left(), call.cancelled()), ("test", "s", 2.0, True))
            call.progress(1, 2, "half")
            self.assertEqual(client.ask_form("?", {}), client.Accepted({"really": True}))
            self.assertEqual(client.ask_form("?", {}), client.Declined())
            self.assertEqual(client.sample("?", 10), "a\nb")
            self.assertEqual(client.roots(), [client.Root("file:///a")])
            with self.assertRaises(client.Failed):
                client.sample("?", 10)
            logger = logging.getLogger("cofferdam-test")
            logger.addHandler(client.LogHandler())
            logger.warning("mind %s", "the gap")
            self.assertEqual(host.progress, [(1, 2, "half")])
            self.assertEqual(host.log, [("warning", "mind the gap")])
            self.assertEqual(host.questions[0], client.Form("?", {}))
        self.assertEqual(call.id(), "")

    def test_secrets_and_tools(self) -> None:
        def shout(arguments: Any) -> str:
            """Shouts."""
            return str(arguments["text"]).upper()

        with testing.host(secrets={"token": "t"}, tools={"double": double, "shout": shout}):
            self.assertEqual(secrets.get("token"), "t")
            self.assertEqual(toolbox.call("double", {"n": 4}), 8)
            self.assertEqual(toolbox.call("shout", {"text": "a"}), "A")
            self.assertEqual([each.name for each in toolbox.granted()], ["double", "shout"])
            with self.assertRaises(toolbox.Failed) as raised:
                toolbox.call("double", {"n": 10})
            self.assertEqual((raised.exception.suggestion, raised.exception.transient), ("pass 9 or less", True))

    def test_calls_side_by_side(self) -> None:
        with testing.host(tools={"double": double, "crash": lambda _: 1 / 0}):
            self.assertEqual(tool_calls.wait_any(), [])
            self.assertEqual(tool_calls.call_all(("double", {"n": n}) for n in range(3)), [0, 2, 4])
            numbers = [tool_calls.start("double", {"n": 10}), tool_calls.start("crash")]
            failed, crashed = tool_calls.wait_any()
            self.assertEqual([failed.call, crashed.call], numbers)
            with self.assertRaisesRegex(tool_calls.Failed, "too large; pass 9 or less"):
                failed.value()
            self.assertEqual(crashed.error and crashed.error.code, "ended")

    def test_ended_calls_of_the_host(self) -> None:
        kind = SimpleNamespace(name="INVALID_ARGUMENTS")
        error = SimpleNamespace(
            kind=kind, error_type=None, message="no n", suggestion="pass n", value='{"a": 1}', transient=False
        )
        Err = type("Err", (), {"value": error})
        ended = tool_calls._ended(SimpleNamespace(call=1, outcome=Err()))
        assert ended.error is not None
        self.assertIsInstance(ended.error, tool_calls.InvalidArguments)
        self.assertEqual((str(ended.error), ended.error.value), ("no n; pass n", {"a": 1}))
        Ok, Content_Json = type("Ok", (), {}), type("Content_Json", (), {"value": "[1]"})
        answered = Ok()
        answered.value = [Content_Json()]
        self.assertEqual(tool_calls._ended(SimpleNamespace(call=2, outcome=answered)).value(), [1])

    def test_places(self) -> None:
        self.assertEqual(files.locate("/data/a/b.txt"), (files.Store("data"), "a/b.txt"))
        self.assertEqual(files.locate("/data"), (files.Store("data"), ""))
        for place in ["data/a", "/", ""]:
            with self.assertRaisesRegex(files.InvalidPath, "is not a path in a store, such as"):
                files.locate(place)

    def test_files(self) -> None:
        with testing.host(stores={"data": {"a.txt": "hay\nneedle\n", "b/c.md": b"\xff"}}) as host:
            data = files.Store("data")
            self.assertEqual(files.granted(), [files.Granted("data", True)])
            self.assertEqual(data.read_text("a.txt"), "hay\nneedle\n")
            self.assertEqual(data.read_range("a.txt", 4, 6), b"needle")
            self.assertEqual(data.stat("b"), files.Stat("directory", 0))
            self.assertEqual([entry.name for entry in data.list(recursive=True)], ["b", "a.txt", "b/c.md"])
            self.assertEqual(data.list(glob="*.{md,txt}"), [files.Entry("a.txt", "file")])
            match = data.search("NEEDLE").matches[0]
            self.assertEqual((match.path, match.lines), ("a.txt", [files.Line(2, "needle")]))
            self.assertEqual(data.search("NEEDLE", case_sensitive=True).matches, [])
            data.replace("n/d.txt", "ñ")
            self.assertEqual(host.stores["data"]["n/d.txt"], "ñ".encode())
            data.delete("n/d.txt")
            refused: list[tuple[Any, type[files.Error]]] = [
                (lambda: data.create("a.txt", ""), files.AlreadyExists),
                (lambda: data.read("n/d.txt"), files.NotFound),
                (lambda: data.read_text("b/c.md"), files.NotText),
                (lambda: data.replace("b", ""), files.WrongType),
                (lambda: data.read("../a"), files.InvalidPath),
                (lambda: data.search("("), files.InvalidPattern),
            ]
            for operation, error in refused:
                with self.subTest(error.__name__), self.assertRaises(error):
                    operation()


if __name__ == "__main__":
    unittest.main()
