//! Description of `run_code` for models.

use crate::Language;

/// Returns the description, which ends with the part about the tools.
pub(crate) fn of(language: Language, tools: &str) -> String {
    let rules = match language {
        Language::JavaScript => JAVASCRIPT,
        Language::Python => PYTHON,
    };
    format!("{rules}\n\n{tools}")
}

const JAVASCRIPT: &str = "\
Runs a JavaScript program that calls tools, in a sandbox, and returns its result. Prefer one \
program to several calls: loop, filter and combine in the program, and return only what you need.

- `await tools.name({…})` calls a tool and returns its plain value. Start independent calls \
together: `await Promise.all([…])`.
- A failed call throws a ToolError (tool, code, message, suggestion). Catch it only if the program \
can do without the result.
- The result is what the program returns, or the value of its last expression. `console.log` is \
for notes beside it.
- There are no imports, no network and no files, only tools. TypeScript types are ignored.
- Each program starts afresh. `await store(key, value)` keeps a value for later programs of the \
conversation, and `await load(key)` reads it.
- If the program fails, no file change of its calls is kept.";

const PYTHON: &str = "\
Runs a Python program that calls tools, in a sandbox, and returns its result. Prefer one program \
to several calls: loop, filter and combine in the program, and return only what you need.

- `await tools.name(argument=…)` calls a tool and returns its plain value. Start independent calls \
together: `await asyncio.gather(…)`.
- A failed call raises a ToolError (tool, code, message, suggestion). Catch it only if the program \
can do without the result.
- The result is the value of the last expression. `print` is for notes beside it.
- The standard library can be imported. There are no other packages, no network and no files, \
only tools.
- Each program starts afresh. `await store(key, value)` keeps a value for later programs of the \
conversation, and `await load(key)` reads it.
- If the program fails, no file change of its calls is kept.";
