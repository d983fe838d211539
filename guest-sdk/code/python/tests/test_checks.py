"""Tests checks before a program runs."""

import unittest

from tests.support import failure, run


class Checks(unittest.TestCase):
    def check(self, code: str, *expected: str) -> None:
        """Checks the first lines of the problems."""
        with self.subTest(code):
            lines = failure(code)[0].removeprefix("not run: ").splitlines()
            self.assertEqual(tuple(line for line in lines if not line.startswith("  ")), expected)

    def passes(self, code: str) -> None:
        with self.subTest(code):
            run(code)

    def test_syntax(self) -> None:
        self.check("x = (", "SyntaxError: '(' was never closed (line 1, column 5)")
        self.check("x = 1\nbreak", "SyntaxError: 'break' outside loop (line 2, column 1)")
        self.assertIn("null bytes", failure("'a\0b'")[0])

    def test_unknown_tools(self) -> None:
        self.check(
            "await tools.word_cuont(text='a')",
            "unknown tool `tools.word_cuont`; did you mean `tools.word_count`? (line 1, column 7)",
        )
        self.check(
            "await tools.zzz()",
            "unknown tool `tools.zzz`; the tools that are granted are: echo, fail, image, math_add_up, "
            "word_count (line 1, column 7)",
        )
        self.check(
            "await tools.search('a')",
            "unknown tool `tools.search`; write `await search_tools(…)` (line 1, column 7)",
        )

    def test_arguments(self) -> None:
        self.check(
            "await tools.word_count(txt='a')",
            "missing argument `text` of `tools.word_count` (line 1, column 7)",
            "`tools.word_count` has no argument `txt`; did you mean `text`? (line 1, column 24)",
        )
        self.check(
            "await tools.math_add_up({'c': 1})",
            "missing arguments `a`, `b` of `tools.math_add_up` (line 1, column 7)",
            "`tools.math_add_up` has no argument `c`; it accepts: a, b (line 1, column 26)",
        )
        self.check(
            "await tools.word_count('a b')",
            "pass the arguments by name: `tools.word_count(text=…)` (line 1, column 24)",
        )
        self.passes("a = {'text': 'b'}\nawait tools.word_count(**a)\nawait tools.word_count(a)\nawait tools.word_count({**a})")
        self.passes("await tools.echo(value=1, other=2)")

    def test_calls_that_are_not_awaited(self) -> None:
        self.check(
            "tools.echo(value=1)\n1",
            "un-awaited call of `tools.echo`; write `await tools.echo(…)` (line 1, column 1)",
        )
        self.check(
            "import asyncio\nasync def f():\n    store('a', 1)\nf()\nasyncio.sleep(1)\n1",
            "un-awaited call of `store`; write `await store(…)` (line 3, column 5)",
            "un-awaited call of `f`; write `await f(…)` (line 4, column 1)",
            "un-awaited call of `asyncio.sleep`; write `await asyncio.sleep(…)` (line 5, column 1)",
        )

    def test_modules(self) -> None:
        self.check(
            "import requests\nfrom urllib import request\nimport numpy as np, json\nfrom tools import echo\nimport zzz",
            "`requests` is not available: use `await tools.…(…)`; the tools that are granted are: echo, "
            "fail, image, math_add_up, word_count (line 1, column 8)",
            "`urllib.request` is not available: use `await tools.…(…)`; the tools that are granted are: "
            "echo, fail, image, math_add_up, word_count (line 2, column 20)",
            "`numpy` is not available: use `math`, `statistics` and lists (line 3, column 8)",
            "there is no module `tools`: `tools` is already defined; do not import it (line 4, column 1)",
            "`zzz` is not available: only parts of the standard library are: asyncio, base64, calendar, "
            "collections, copy, csv, dataclasses, datetime, decimal, enum, fractions, functools, hashlib, html, "
            "itertools, json, math, operator, random, re, statistics, string, textwrap, time, typing, urllib, uuid, xml "
            "(line 5, column 8)",
        )
        self.check(
            "import os\nos.system('ls')\n__import__('subprocess')",
            "`os.system` is not available: there are no other programs to run; the tools that are granted "
            "are: echo, fail, image, math_add_up, word_count (line 2, column 1)",
            "`subprocess` is not available: there are no other programs to run (line 3, column 1)",
        )
        self.passes("try:\n    import requests\nexcept ImportError:\n    requests = None")
        self.passes("import os.path, urllib.parse, collections.abc\nfrom xml.etree import ElementTree")

    def test_builtins(self) -> None:
        self.check(
            "open('a')",
            "`open` is not available: there are no files; use tools, or `await store(key, value)` and "
            "`await load(key)` (line 1, column 1)",
        )
        self.passes("def open(x): return x\nopen('a')")

    def test_shortened_values(self) -> None:
        for mark in ("abc… [truncated", "a [... 12 more items]", "abc…(120 more characters)", "… 5 more lines"):
            with self.subTest(mark):
                message, _ = failure(f"await tools.word_count(text={mark!r})")
                self.assertIn("this string is a shortened copy", message)
                self.assertIn('`await load("result_1")`', message)
        self.check(
            "text = 'a… [truncated'\n1" + "\nawait tools.echo(value=text)",
            "this string is a shortened copy: it contains the truncation mark `… [truncated`; use the "
            'whole value with `await load("result_1")` or call the tool again in the program (line 1, column 8)',
        )
        self.passes("'… [truncated' in 'abc'\nawait tools.word_count(text='and more items...')")

    def test_local_names_shadow(self) -> None:
        self.passes("class T:\n    def x(self): return 1\ntools = T()\ntools.x()\n1")
        self.passes("def store(a): pass\nstore(1)\n1")

    def test_at_most_ten_problems(self) -> None:
        message, _ = failure("\n".join(f"import zz{n}" for n in range(15)))
        self.assertEqual(len(message.splitlines()), 11)
        self.assertTrue(message.endswith("\n5 more problems"))

    def test_the_value_of_the_failure(self) -> None:
        message, value = failure("x = 1\nawait tools.zzz()")
        error = value["error"]
        self.assertEqual((error["type"], error["message"], error["line"], error["column"]), ("CheckError", message, 2, 7))
        self.assertTrue(message.endswith("(line 2, column 7)\n  2 | await tools.zzz()"))

    def test_large_programs(self) -> None:
        self.assertTrue(failure("#" * (256 << 10) + "\n1")[0].startswith("ProgramTooLarge: the program has 262146 bytes"))


if __name__ == "__main__":
    unittest.main()
