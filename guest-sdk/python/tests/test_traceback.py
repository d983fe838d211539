"""Tests tracebacks of tools."""

import linecache
import sys
import traceback
import unittest

from cofferdam import _traceback

SOURCE = "/plugin/"
TEXT = """\
def deep(n):
    return deep(n - 1) if n else 1 / 0

def cause():
    try:
        deep(0)
    except ZeroDivisionError as error:
        raise LookupError("the shelf is empty") from error

def context():
    try:
        deep(0)
    except ZeroDivisionError:
        raise LookupError("the shelf is empty")

def neither():
    try:
        deep(0)
    except ZeroDivisionError:
        raise LookupError("the shelf is empty") from None

def note():
    error = LookupError("the shelf is empty")
    error.add_note("look again")
    raise error

def group():
    raise ExceptionGroup("two", [ValueError(1), ValueError(2)])

def name():
    countt = 0
    return count

def empty():
    raise LookupError

class ShelfError(Exception):
    pass

def other():
    raise ShelfError("empty")

def syntax():
    compile("x = (", "/plugin/other.py", "exec")
"""


@unittest.skipUnless(sys.version_info >= (3, 11), "a component has a later Python")
class Brief(unittest.TestCase):
    def setUp(self) -> None:
        self.names: dict[str, object] = {"__name__": "app"}
        path = SOURCE + "app.py"
        linecache.cache[path] = (len(TEXT), None, TEXT.splitlines(keepends=True), path)
        self.addCleanup(linecache.cache.pop, path)
        exec(compile(TEXT, path, "exec"), self.names)

    def raised(self, name: str, *arguments: object) -> BaseException:
        try:
            self.names[name](*arguments)  # type: ignore[operator]
        except Exception as error:
            assert error.__traceback__ is not None
            # Without the frame of this test.
            return error.with_traceback(error.__traceback__.tb_next)
        raise AssertionError("no exception")

    def test_it_says_what_python_says(self) -> None:
        for name in ("cause", "context", "neither", "note", "name", "empty", "other"):
            with self.subTest(name):
                error = self.raised(name)
                expected = "".join(traceback.format_exception(error)).replace(SOURCE, "")
                # It has no lines with `~` and `^` below the source.
                plain = [line for line in expected.splitlines() if not line or line.strip("~^ ")]
                self.assertEqual(_traceback.brief(error, SOURCE).splitlines(), plain)

    def test_a_recursion_is_shortened(self) -> None:
        said = _traceback.brief(self.raised("deep", 50), SOURCE)
        self.assertEqual(said.count('File "app.py", line 2, in deep'), 3)
        self.assertTrue(said.endswith("ZeroDivisionError: division by zero\n"))

    def test_errors_that_need_more(self) -> None:
        self.assertIn("+---------------- 2 ----------------", _traceback.brief(self.raised("group"), SOURCE))
        self.assertIn('File "other.py", line 1', _traceback.brief(self.raised("syntax"), SOURCE))


if __name__ == "__main__":
    unittest.main()
