//! Code mode: programs of the model that call tools, run by the interpreters.

mod cli;
mod hostile;
mod suspended;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam::code::Language;
use cofferdam::code_mode::{CodeOffer, CodeSelection};
use cofferdam::engine::Compiler;
use cofferdam::tool::declaration::Declaration;
use cofferdam::tool::{Functions, ToolFailure, ToolSource};
use cofferdam::{Host, HostBuilder};
use cofferdam_tests::{binary, root};
use serde_json::{Value, json};
use tokio::sync::Barrier;

const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// Returns the interpreter of a language.
fn interpreter(language: Language) -> PathBuf {
    let path = root().join("target/code").join(format!("{}.wasm", language.name()));
    assert!(path.is_file(), "{} is missing: run `cargo xtask guests` first", path.display());
    path
}

/// Returns a builder of a host whose programs call the tools of `source`.
fn builder(language: Language, source: impl ToolSource + 'static) -> HostBuilder {
    let compiler =
        Compiler::Child { program: binary(), arguments: vec!["cofferdam-compile-child".into()] };
    let builder = Host::builder().source(Arc::new(source)).code(selection(language));
    builder.compiler(compiler).cache_directory(root().join("target/code/cache"))
}

fn selection(language: Language) -> CodeSelection {
    CodeSelection {
        offer: Some(CodeOffer::Both),
        language: Some(language),
        interpreter: Some(interpreter(language)),
        ..CodeSelection::default()
    }
}

/// Offers only `run_code`.
fn only(builder: HostBuilder) -> HostBuilder {
    let offer = Some(CodeOffer::Only);
    builder.code(CodeSelection { offer, ..selection(Language::JavaScript) })
}

async fn host(language: Language, source: impl ToolSource + 'static) -> Host {
    builder(language, source).build().await.unwrap()
}

/// Runs a program and returns what the model sees.
async fn run(host: &Host, code: &str) -> Value {
    match host.call("run_code", json!({"code": code})).await {
        Ok(output) => output.value().unwrap().clone(),
        Err(error) => {
            let shown = error.text().and_then(|text| serde_json::from_str(&text).ok());
            shown.unwrap_or_else(|| panic!("{error}"))
        }
    }
}

/// Returns tools that add, fail and wait. `wait` ends when 16 of its calls have begun.
fn tools() -> Functions {
    let pair = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}"#;
    let begun = Arc::new(Barrier::new(16));
    Functions::new("tests")
        .with(Declaration::new("add", "Adds numbers.", pair), async |arguments, _| {
            let number = |name: &str| arguments.value()[name].as_i64().unwrap_or_default();
            Ok(json!({"sum": number("a") + number("b")}))
        })
        .unwrap()
        .with(Declaration::new("fail", "Fails.", ANY_OBJECT), async |_, _| {
            let mut failure = ToolFailure::new("the printer is out of paper");
            failure.suggestion = Some("add paper".to_owned());
            Err(failure.into())
        })
        .unwrap()
        .with(Declaration::new("wait", "Waits.", ANY_OBJECT), move |_, _| {
            let begun = Arc::clone(&begun);
            async move {
                match tokio::time::timeout(Duration::from_secs(60), begun.wait()).await {
                    Ok(_) => Ok(json!("done")),
                    Err(_) => Err(ToolFailure::new("fewer than 16 calls wait together").into()),
                }
            }
        })
        .unwrap()
}

/// A program in both languages.
struct Program {
    javascript: &'static str,
    python: &'static str,
}

impl Program {
    fn in_language(&self, language: Language) -> &'static str {
        match language {
            Language::JavaScript => self.javascript,
            Language::Python => self.python,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_call_tools_and_return_plain_values() {
    let program = Program {
        javascript: "let total = 0;\nfor (const b of [1, 2, 3]) {\n  total += (await tools.add({a: total, b})).sum;\n}\nconsole.log('added', total);\nreturn {total}",
        python: "total = 0\nfor b in [1, 2, 3]:\n    total += (await tools.add(a=total, b=b))['sum']\nprint('added', total)\n{'total': total}",
    };
    for language in Language::ALL {
        let host = host(language, tools()).await;
        let answer = run(&host, program.in_language(language)).await;
        assert_eq!(answer["result"], json!({"total": 11}), "{language}: {answer}");
        assert_eq!(answer["logs"].as_str().map(str::trim_end), Some("added 11"), "{language}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_throws_what_the_tool_has_said() {
    let caught = Program {
        javascript: "try { await tools.fail({}) } catch (e) { return [e instanceof ToolError, e.tool, e.code, e.message, e.suggestion] }",
        python: "try:\n    await tools.fail()\nexcept ToolError as e:\n    result = [True, e.tool, e.code, e.message, e.suggestion]\nresult",
    };
    let uncaught = Program {
        javascript: "const x = 1;\nawait tools.fail({});",
        python: "x = 1\nawait tools.fail()",
    };
    for language in Language::ALL {
        let host = host(language, tools()).await;
        let answer = run(&host, caught.in_language(language)).await;
        let expected = json!([true, "fail", "failed", "the printer is out of paper", "add paper"]);
        assert_eq!(answer["result"], expected, "{language}: {answer}");
        let error = &run(&host, uncaught.in_language(language)).await["error"];
        assert_eq!((&error["type"], &error["tool"]), (&json!("ToolError"), &json!("fail")));
        assert_eq!(error["line"], 2, "{language}: {error}");
        assert_eq!(error["calls"], json!([{"tool": "fail", "ok": false}]), "{language}");
        assert_eq!(error["changes_kept"], false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_started_together_run_together() {
    let program = Program {
        javascript: "return (await Promise.all(Array.from({length: 16}, () => tools.wait({})))).length",
        python: "import asyncio\nlen(await asyncio.gather(*[tools.wait() for _ in range(16)]))",
    };
    for language in Language::ALL {
        let host = host(language, tools()).await;
        let answer = run(&host, program.in_language(language)).await;
        assert_eq!(answer["result"], 16, "{language}: {answer}");
    }
}

/// Nothing runs if a check before the program fails, and the model gets all problems.
#[tokio::test(flavor = "multi_thread")]
async fn problems_are_found_before_anything_runs() {
    let program = Program {
        javascript: "await tools.add({a: 1, b: 2});\nawait tools.ad({a: 1, b: 2});\nawait tools.add({a: 1, c: 2});\ntools.fail({});\nreturn 1",
        python: "await tools.add(a=1, b=2)\nawait tools.ad(a=1, b=2)\nawait tools.add(a=1, c=2)\ntools.fail()\n1",
    };
    for language in Language::ALL {
        let host = host(language, tools()).await;
        let error = &run(&host, program.in_language(language)).await["error"];
        let message = error["message"].as_str().unwrap();
        for part in ["ad", "add", "`b`", "`c`", "line 2", "line 3", "line 4", "await"] {
            assert!(message.contains(part), "{language}: {part}: {message}");
        }
        assert_eq!(error.get("calls"), None, "{language}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_remain_for_the_next_program() {
    let stores = Program {
        javascript: "await store('rows', [1, {a: 2}])",
        python: "await store('rows', [1, {'a': 2}])",
    };
    let loads = Program {
        javascript: "return [await load('rows'), await load('other') ?? null]",
        python: "[await load('rows'), await load('other')]",
    };
    for language in Language::ALL {
        let host = host(language, tools()).await;
        run(&host, stores.in_language(language)).await;
        let answer = run(&host, loads.in_language(language)).await;
        assert_eq!(answer["result"], json!([[1, {"a": 2}], null]), "{language}: {answer}");
    }
}
