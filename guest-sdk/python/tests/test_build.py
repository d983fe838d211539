"""Tests which interfaces a source uses."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from cofferdam._build import main, sends_requests, uses


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
        self.check("from cofferdam.tool_calls import call_all", "tool_calls")
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

    def test_modules_that_send_requests(self) -> None:
        for source in (
            "import urllib.request as r",
            "from urllib import request",
            "from urllib.request import urlopen",
            "import http.client",
            "from http import client",
            "def f():\n    import requests",
            "from httpx import Client",
            "import importlib\nimportlib.import_module('urllib3')",
        ):
            with self.subTest(source):
                self.assertTrue(sends_requests(source))
        for source in (
            "import urllib.parse",
            "from urllib import parse",
            "import http",
            "import request",
            "x = 'httpx'",
        ):
            with self.subTest(source):
                self.assertFalse(sends_requests(source))

    def test_packages_that_send_requests(self) -> None:
        packages = {
            "forge/__init__.py": "from . import api",
            "forge/api.py": "from ._send import send",
            "forge/_send.py": "try:\n    import requests\nexcept ImportError:\n    pass",
            "shelf/__init__.py": "if TYPE_CHECKING:\n    import httpx\ndef fetch():\n    import urllib.request",
            "later.py": "type X[T = int] = list[T]",
            "unused.py": "import requests",
        }
        self.assertIn("http", self.uses_of("import forge", packages))
        self.assertIn("http", self.uses_of("from forge.api import send", packages))
        self.assertNotIn("http", self.uses_of("import shelf, later", packages))

    def uses_of(self, source: str, packages: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {
                "source/app.py": source,
                **{f"packages/{each}": packages[each] for each in packages},
            }.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                self.assertEqual(main(Path(folder, "source"), Path(folder, "packages")), 0)
            return printed.getvalue().split()


if __name__ == "__main__":
    unittest.main()
