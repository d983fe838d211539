"""Tests programs that run: results, calls, output, time, errors."""

import ast
import asyncio
import builtins
import importlib
import json
import unittest
from typing import Any

from cofferdam_code import run as run_module
from tests.support import failure, run


class Results(unittest.TestCase):
    def check(self, code: str, expected: Any) -> None:
        with self.subTest(code):
            self.assertEqual(run(code)["result"], expected)

    def test_the_last_expression_is_the_result(self) -> None:
        self.check("", None)
        self.check("1 + 1", 2)
        self.check("x = 1", None)
        self.check("x = 1\nif x:\n    'yes'\nelse:\n    'no'", "yes")
        self.check("try:\n    1 / 0\nexcept ZeroDivisionError:\n    'divided'", "divided")
        self.check("'a docstring'", "a docstring")
        self.check("for i in range(3):\n    i", None)

    def test_return_outside_functions(self) -> None:
        self.check("for i in range(9):\n    if i == 3:\n        return i", 3)
        self.check("x: int = 1\nx += 1\ndef f():\n    global x\n    x += 1\nf()\nif x > 5:\n    return\nx", 3)
        self.check("from __future__ import annotations\nreturn [y for y in range(2)]", [0, 1])
        self.check("return await tools.word_count(text='a b')", 2)

    def test_an_awaitable_result_is_awaited(self) -> None:
        self.check("tools.word_count(text='a b')", 2)
        self.check("async def main():\n    return 5\nmain()", 5)
        self.check("import asyncio\nasync def main():\n    return 5\nasyncio.run(main())", 5)
        self.check("import asyncio\nif __name__ == '__main__':\n    asyncio.get_event_loop().run_until_complete(asyncio.sleep(1, 7))", 7)

    def test_conversion(self) -> None:
        self.check("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n[P(1)]", [{"x": 1}])
        self.check("{2, 1}, (1, 2), range(2), {'a': 1}.values()", [[1, 2], [1, 2], [0, 1], [1]])
        self.check("b'hi'", {"media_type": "application/octet-stream", "data": "aGk="})
        self.check("[2**53, 2**53 + 1, 2**60]", [2**53, str(2**53 + 1), 2**60])
        self.check("[10**23 + 1, 10**309]", [str(10**23 + 1), str(10**309)])
        self.check("await tools.echo(value='a\\ud83d')", "a\ufffd")
        self.check("[float('nan'), float('inf'), 1.5]", [None, None, 1.5])
        self.check("import datetime\n[datetime.datetime(2020, 1, 2), datetime.date(2020, 1, 2)]", ["2020-01-02T00:00:00", "2020-01-02"])
        self.check("{1: 1, None: 2, True: 3, (1, 2): 4}", {"1": 3, "null": 2, "(1, 2)": 4})
        self.check("import decimal, enum\nclass C(enum.Enum):\n    A = 1\n[decimal.Decimal('1.50'), C.A]", ["1.50", 1])
        self.check("(i for i in range(3))", [0, 1, 2])

    def test_values_without_a_json_form(self) -> None:
        self.assertIn("a circular value", failure("x = []\nx.append(x)\nx")[0])
        self.assertIn("nested more than 120 levels", failure("x = []\nfor i in range(500): x = [x]\nx")[0])
        self.assertIn("`await store(key, value)`", failure("'a' * 2_000_000")[0])
        self.assertIn("was not awaited", failure("async def f(): pass\n[f()]")[0])


class Calls(unittest.TestCase):
    def check(self, code: str, expected: Any) -> None:
        with self.subTest(code):
            self.assertEqual(run(code)["result"], expected)

    def test_values(self) -> None:
        self.check("await tools.word_count(text='a b')", 2)
        self.check("await tools.word_count({'text': 'a b'})", 2)
        self.check("await tools.word_count({'text': 'a b'}, n=1)", 2)
        self.check("await tools['math.add-up'](a=1, b=2) + await tools.math_add_up(a=1, b=2)", 6)
        self.check("await tools.image()", {"media_type": "image/png", "data": "YWJj"})
        self.check("await tools.echo(value=None)", None)
        self.check("await search_tools('words')", [{"name": "word_count"}])
        self.check("await describe_tool(tools.word_count)", {"name": "word_count"})
        self.check("await store('a', {'b': 1})\nawait load('a'), await load('c')", [{"b": 1}, None])

    def test_calls_side_by_side(self) -> None:
        self.check(
            "import asyncio\nawait asyncio.gather(*[tools.echo(value=n) for n in range(20)])", list(range(20))
        )
        self.check("a = tools.echo(value=1)\nb = tools.echo(value=2)\n[await b, await a]", [2, 1])
        self.check(
            "import asyncio\nasync with asyncio.TaskGroup() as group:\n"
            "    a = group.create_task(tools.echo(value=1))\na.result()",
            1,
        )
        self.check("import asyncio\nt = asyncio.create_task(tools.echo(value=1))\nawait t", 1)
        self.check("import asyncio\nawait asyncio.wait_for(tools.echo(value=1), 5)", 1)
        self.check("import asyncio\n[await c for c in asyncio.as_completed([tools.echo(value=1)])]", [1])

    def test_polling_ends(self) -> None:
        self.check(
            "import asyncio\nt = asyncio.create_task(tools.echo(value=1))\n"
            "while not t.done():\n    await asyncio.sleep(0)\nt.result()",
            1,
        )

    def test_errors(self) -> None:
        self.check(
            "try:\n    await tools.fail(reason='no')\nexcept ToolError as error:\n"
            "    r = [error.tool, error.code, error.message, error.suggestion, error.value, str(error)]\nr",
            ["fail", "failed", "no", "try another reason", {"code": 7}, "no; try another reason"],
        )
        message, value = failure("x = 1\nawait tools.fail(reason='no')")
        self.assertEqual(
            message,
            "ToolError of `fail`: no (line 2, column 1)\n  2 | await tools.fail(reason='no')\n"
            "suggestion: try another reason",
        )
        error = value["error"]
        self.assertEqual((error["type"], error["tool"], error["code"], error["line"]), ("ToolError", "fail", "failed", 2))
        self.check(
            "import asyncio\nr = await asyncio.gather(tools.fail(reason='no'), tools.echo(value=1), return_exceptions=True)\n"
            "[type(r[0]).__name__, r[1]]",
            ["ToolError", 1],
        )

    def test_calls_that_nothing_waits_for(self) -> None:
        self.assertIn("not awaited: echo (line 2)", failure("x = 1\ny = tools.echo(value=1)\nx")[0])
        self.assertIn(
            "not awaited: work (line 3)",
            failure("import asyncio\nglobal work\nasync def work(): await asyncio.sleep(9)\nt = asyncio.create_task(work())\n1")[0],
        )
        # The program waited for it, with `gather`.
        self.check(
            "import asyncio\nasync def late():\n    await asyncio.sleep(1)\n    return await tools.echo(value=1)\n"
            "try:\n    await asyncio.gather(tools.fail(reason='no'), late())\nexcept ToolError:\n    r = 'caught'\nr",
            "caught",
        )
        self.assertIn("write `await` before it", failure("x = tools.echo(value=1)\nx['a']")[0])

    def test_a_deadlock_is_an_error(self) -> None:
        self.assertIn("can never happen", failure("import asyncio\nawait asyncio.Event().wait()")[0])

    def test_arguments_that_are_not_json(self) -> None:
        self.assertIn("contains itself", failure("x = []\nx.append(x)\nawait tools.echo(value=x)")[0])


class Output(unittest.TestCase):
    def test_print(self) -> None:
        self.assertEqual(run("print('a', 1)\n2"), {"result": 2, "logs": "a 1\n"})
        self.assertEqual(failure("print('a')\n1 / 0")[1]["logs"], "a\n")

    def test_the_rest_is_counted(self) -> None:
        logs = run("for i in range(100_000): print('x' * 50)")["logs"]
        self.assertLess(len(logs), (64 << 10) + 50)
        kept = (64 << 10) // 51
        self.assertTrue(logs.endswith(f"x\n… {100_000 - kept} more lines"), logs[-60:])
        self.assertTrue(run("print('x' * 10_000_000)")["logs"].endswith("x\n… 1 more line"))


class Determinism(unittest.TestCase):
    def test_the_clock_is_that_of_the_run(self) -> None:
        code = (
            "import time, datetime, asyncio\n"
            "a = time.time(), str(datetime.datetime.now(datetime.timezone.utc)), datetime.datetime.now() == datetime.datetime.now()\n"
            "await asyncio.sleep(5)\n[*a, time.time() - a[0]]"
        )
        self.assertEqual(run(code)["result"], [1700000000.0, "2023-11-14 22:13:20+00:00", True, 5.0])

    def test_random_numbers_depend_on_the_seed(self) -> None:
        code = "import random, uuid, secrets\n[random.random(), str(uuid.uuid4()), secrets.token_hex(4)]"
        self.assertEqual(run(code), run(code))
        self.assertEqual(run("import random\nrandom.random()")["result"], 0.32383276483316237)


class Errors(unittest.TestCase):
    def test_places(self) -> None:
        message, value = failure("def f():\n  return g()\ndef g():\n  é = 'é'; return [1][len(é) + 5]\nf()")
        self.assertEqual(
            message,
            "IndexError: list index out of range (line 4, column 19)\n  4 |   é = 'é'; return [1][len(é) + 5]\n"
            "called from line 2, column 10\n  2 |   return g()\ncalled from line 5, column 1\n  5 | f()",
        )
        self.assertEqual(value["error"]["source"], "  é = 'é'; return [1][len(é) + 5]")

    def test_only_frames_of_the_program_are_shown(self) -> None:
        message, _ = failure("import json\njson.loads('{x')")
        self.assertTrue(message.startswith("JSONDecodeError: "), message)
        self.assertTrue(message.endswith("(line 2, column 1)\n  2 | json.loads('{x')"), message)

    def test_groups(self) -> None:
        code = "import asyncio\nasync def f(n): raise ValueError(n)\nasync with asyncio.TaskGroup() as g:\n    g.create_task(f(1))"
        self.assertTrue(failure(code)[0].startswith("ValueError: 1 (line 2, column 17)"))
        self.assertIn("- ValueError: 2", failure(f"{code}\n    g.create_task(f(2))")[0])

    def test_exits(self) -> None:
        self.assertEqual(run("import sys\nprint(1)\nsys.exit()"), {"result": None, "logs": "1\n"})
        self.assertIn("the program called `exit` with no", failure("import sys\nsys.exit('no')")[0])
        self.assertTrue(failure("raise KeyboardInterrupt")[0].startswith("KeyboardInterrupt"))

    def test_recursion(self) -> None:
        self.assertTrue(failure("def f(n): return f(n + 1)\nf(0)")[0].startswith("RecursionError: maximum recursion"))

    def test_exceptions_without_text(self) -> None:
        message, _ = failure("class E(Exception):\n    def __str__(self): raise ValueError\nraise E()")
        self.assertTrue(message.startswith("E: (its text cannot be shown) (line 3"), message)


class Hostile(unittest.TestCase):
    """Programs that replace what the interpreter might use."""

    def tearDown(self) -> None:
        # A component runs one program.
        run_module._builtins.__dict__.update(builtins.__dict__)
        importlib.reload(json)

    def test_replaced_functions(self) -> None:
        self.assertEqual(run("import builtins\nbuiltins.len = builtins.isinstance = None\n[1]")["result"], [1])
        self.assertEqual(run("import sys\nsys.stdout = sys.stderr = None\n1")["result"], 1)
        self.assertTrue(failure("import sys\nsys.stdout = None\n1 / 0")[0].startswith("ZeroDivisionError"))
        self.assertTrue(failure("__builtins__.clear() if isinstance(__builtins__, dict) else 0\nint('a')")[0])

    def test_replaced_modules(self) -> None:
        code = "import json, json.encoder\nold = json.dumps\njson.dumps = None\nr = {'a': 1}\n"
        self.assertTrue(failure(f"{code}1 / 0", decode=ast.literal_eval)[0].startswith("ZeroDivisionError"))

    def test_tasks_that_nothing_waits_for(self) -> None:
        code = "import asyncio\nasync def f(): pass\nt = [asyncio.create_task(f()) for _ in range(10_000)]\n1"
        self.assertIn("and 9995 more", failure(code)[0])

    def test_an_interpreter_is_not_used_twice_in_the_same_state(self) -> None:
        run("x = 1")
        self.assertTrue(failure("x")[0].startswith("NameError"))
        self.assertIs(asyncio.iscoroutine(1), False)


if __name__ == "__main__":
    unittest.main()
