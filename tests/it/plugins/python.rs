//! The memory with which a component of Python begins.

use std::fs;

use super::cofferdam;
use super::new::Project;

const PROGRAM: &str = r#"import json
import sys

from cofferdam import tool

BEFORE = {"a": [1, 2]}


@tool
def counts() -> list[bool]:
    """Returns which objects are immortal: three of the component, and one of the call."""
    return [sys.getrefcount(each) > 1 << 30 for each in (BEFORE, BEFORE["a"], json.dumps, [])]


@tool
def recursion() -> str:
    """Calls itself through C."""
    sys.setrecursionlimit(1 << 30)

    def deeper(level: int) -> int:
        return sorted([level], key=lambda _: deeper(level + 1))[0]

    try:
        return str(deeper(0))
    except RecursionError as error:
        return str(error)
"#;

#[test]
fn objects_of_the_component_are_immortal_and_recursion_through_c_is_an_exception() {
    let Some(project) = Project::new("python") else { return };
    let directory = project.directory();
    let main = ["first_try.py", "app.py", "main.py", "src/first_try.py"]
        .map(|name| directory.join(name))
        .into_iter()
        .find(|path| path.is_file())
        .unwrap();
    fs::write(main, PROGRAM).unwrap();
    let built = cofferdam(&directory, &["build"]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    assert!(!built.stderr.contains("slower than it could be"), "{}", built.stderr);
    let call = |tool: &str, arguments: &str| {
        let arguments = ["call", tool, arguments, "--plugin", "dist/first-try.wasm"];
        let called = cofferdam(&directory, &arguments);
        assert_eq!(called.code, 0, "{}{}", called.stdout, called.stderr);
        called.stdout
    };
    assert_eq!(call("counts", "{}"), "[true,true,true,false]\n");
    assert!(call("recursion", "{}").starts_with("Stack overflow"));
}
