//! Programs that do harm. Each ends as one failed call, and the host serves on.

use super::*;

/// Programs with a part of the error that the model gets.
const JAVASCRIPT: &[(&str, &str)] = &[
    ("for (;;) {}", "CpuLimit"),
    ("while (true) { await null }", "CpuLimit"),
    ("const a = []; for (;;) a.push('x'.repeat(1000000))", "memory"),
    ("function f() { return f() + 1 } return f()", "stack"),
    ("return 'x'.repeat(10000000)", "return"),
    ("const a = {}; a.a = a; return a", "circular"),
    ("await new Promise(() => {})", "never"),
    (
        "Object.defineProperty(Object.prototype, 'tool', {get() { throw 1 }}); await tools.fail({})",
        "paper",
    ),
    ("return await tools.then({})", "then"),
    ("return await tools.constructor({})", "constructor"),
    ("return await tools.__proto__({})", "__proto__"),
    ("import fs from 'fs'; return 1", "import"),
    ("const fs = require('fs'); return 1", "require"),
    ("return await fetch('http://example.com')", "fetch"),
    ("return process.env", "process"),
    ("throw null", "null"),
    ("throw {toString() { throw 1 }}", ""),
    ("return {get a() { throw new Error('own') }}", "own"),
    ("return {toJSON() { for (;;) {} }}", "CpuLimit"),
    ("let x = ;", "line 1"),
];

/// Programs that must not disturb the result.
const HARMLESS: &[&str] = &[
    "JSON.stringify = () => 'x'; JSON.parse = () => 1; return await tools.add({a: 1, b: 2})",
    "Promise.prototype.then = () => 1; return await tools.add({a: 1, b: 2})",
    "Array.prototype.map = Array.prototype.push = null; return await tools.add({a: 1, b: 2})",
    "Object.prototype.a = 7; return await tools.add({a: 1, b: 2})",
    "globalThis.ToolError = null; globalThis.console = null; return {sum: 3}",
    "return eval('1+2') === 3 ? {sum: 3} : null",
    "return new Function('return {sum: 3}')()",
];

const PYTHON: &[(&str, &str)] = &[
    ("while True: pass", "CpuLimit"),
    ("a = []\nwhile True: a.append('x' * 1000000)", "emory"),
    ("def f(): return f() + 1\nf()", "RecursionError"),
    ("'x' * 10000000", "return"),
    ("a = []\na.append(a)\na", "circular"),
    ("import asyncio\nawait asyncio.get_event_loop().create_future()", "never"),
    ("await tools.then()", "then"),
    ("await tools.__class__()", "__class__"),
    ("import requests", "requests"),
    ("import subprocess", "subprocess"),
    ("import socket", "socket"),
    ("import tools", "tools"),
    ("raise ValueError('own')", "own"),
    ("x = = 1", "line 1"),
    ("class A:\n    def __str__(self): raise ValueError('own')\nraise Exception(A())", ""),
    ("raise SystemExit(1)", "SystemExit"),
    ("import os\nos._exit(1)", ""),
];

const HARMLESS_PYTHON: &[&str] = &[
    "import builtins\nbuiltins.len = builtins.print = None\nawait tools.add(a=1, b=2)",
    "import asyncio\nasyncio.gather = asyncio.sleep = None\nawait tools.add(a=1, b=2)",
    "eval('{\"sum\": 3}')",
];

async fn check(language: Language, bad: &[(&str, &str)], harmless: &[&str]) {
    let host = host_with_little_time(language, tools()).await;
    for (program, part) in bad {
        let answer = run(&host, program).await;
        let error = answer["error"].to_string();
        assert!(answer.get("error").is_some(), "{language}: {program}: {answer}");
        assert!(error.contains(part), "{language}: {program}: expected {part}: {error}");
        assert!(error.len() < 4000, "{language}: {program}: {} bytes", error.len());
    }
    for program in harmless {
        let answer = run(&host, program).await;
        assert_eq!(answer["result"]["sum"], 3, "{language}: {program}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_in_javascript_that_do_harm_end_as_failed_calls() {
    check(Language::JavaScript, JAVASCRIPT, HARMLESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_in_python_that_do_harm_end_as_failed_calls() {
    check(Language::Python, PYTHON, HARMLESS_PYTHON).await;
}

/// Builds a host whose programs have little CPU time.
async fn host_with_little_time(language: Language, source: Functions) -> Host {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cofferdam.toml");
    let config = "[code]\nlimits = { cpu-ms-max = 2000 }\n";
    std::fs::write(&path, config).unwrap();
    builder(language, source).config_file(path).build().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_output_and_of_promises_is_cut() {
    let programs = [
        (
            Language::JavaScript,
            "for (let i = 0; i < 100000; i++) console.log('x'.repeat(100)); return 1",
        ),
        (Language::Python, "for i in range(100000): print('x' * 100)\n1"),
    ];
    for (language, program) in programs {
        let host = host(language, tools()).await;
        let answer = run(&host, program).await;
        assert_eq!(answer["result"], 1, "{language}: {answer}");
        assert!(answer.to_string().len() < 6000, "{language}: {}", answer.to_string().len());
    }
    let programs = [
        (
            Language::JavaScript,
            "for (let i = 0; i < 100000; i++) Promise.resolve(i).then(() => {}); return 1",
        ),
        (
            Language::JavaScript,
            "for (let i = 0; i < 300; i++) tools.add({a: 1, b: i}).catch(() => 0); return 1",
        ),
        (
            Language::Python,
            "import asyncio\nfor i in range(100000): asyncio.ensure_future(asyncio.sleep(0))\n1",
        ),
    ];
    for (language, program) in programs {
        let host = host(language, tools()).await;
        let answer = run(&host, program).await;
        // Either it ends, or it says that calls were not awaited or that memory was exhausted.
        let text = answer.to_string();
        let is_explained = text.contains("await") || text.contains("emory");
        assert!(answer["result"] == 1 || is_explained, "{language}: {program}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_257th_call_fails() {
    let programs = [
        (
            Language::JavaScript,
            "let n = 0; try { for (;; n++) await tools.add({a: 1, b: n}) } catch (e) { return [n, e.code] }",
        ),
        (
            Language::Python,
            "n = 0\ntry:\n    while True:\n        await tools.add(a=1, b=n)\n        n += 1\nexcept ToolError as e:\n    result = [n, e.code]\nresult",
        ),
    ];
    for (language, program) in programs {
        let host = host(language, tools()).await;
        assert_eq!(run(&host, program).await["result"], json!([256, "limit"]), "{language}");
    }
}
