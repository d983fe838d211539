"""Tests which interfaces a source uses."""

import unittest

from cofferdam._build import uses


class Uses(unittest.TestCase):
    def check(self, source: str, *expected: str) -> None:
        with self.subTest(source):
            self.assertEqual(uses(source), set(expected))

    def test_what_is_mentioned(self) -> None:
        self.check("from cofferdam import tool, call, files as f", "call", "files")
        self.check("import cofferdam.files as f", "files")
        self.check("from cofferdam.client import log", "client")
        self.check("import cofferdam\ncofferdam.secrets.get('x')", "secrets")
        self.check("import cofferdam as c\nc.toolbox.call('x')", "toolbox")
        self.check("from cofferdam import *\ncall.progress(1)", "call")
        self.check("import importlib\nimportlib.import_module('cofferdam.files')", "files")
        self.check("def f():\n    from cofferdam import call", "call")

    def test_what_is_not(self) -> None:
        self.check("from cofferdam import tool, testing")
        self.check("import cofferdam\nother.call()\nfiles = 1\nx.files")
        self.check("from other import call, files")

    def test_what_is_not_python(self) -> None:
        with self.assertRaises(SyntaxError):
            uses("x = (")


if __name__ == "__main__":
    unittest.main()
