//! The component: its tool, and the function that makes the snapshot.

mod calls;
mod clock;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use cofferdam_sdk::{Content, ToolFailure, tool};

use crate::component::calls::Component;
use crate::engine::Interpreter;
use crate::host::{EndedCall, Host};
use crate::run::{Input, run};

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    reason = "written by wit-bindgen"
)]
mod bindings {
    wit_bindgen::generate!({
        inline: "package cofferdam:code-javascript; \
                 world interpreter { export wizer-initialize: func(); }",
        world: "cofferdam:code-javascript/interpreter",
    });
}

thread_local! {
    static INTERPRETER: OnceCell<Interpreter> = const { OnceCell::new() };
}

/// Runs a JavaScript or TypeScript program that calls tools.
#[tool(title = "Run JavaScript", open_world = false)]
pub fn run_code(
    /// The program: the body of an async function.
    code: String,
    /// JSON text with the callable tools.
    #[tool(default = "{}".to_owned())]
    catalog: String,
    /// Decimal number that seeds random numbers.
    #[tool(default = "0".to_owned())]
    seed: String,
    /// Time of the program's clock in milliseconds since 1970.
    #[tool(default)]
    now: i64,
) -> Result<Content, ToolFailure> {
    let seed = seed.parse().unwrap_or_default();
    let input = Input { code: &code, catalog: &catalog, seed, now };
    run_with(Rc::new(Component), &input)
}

cofferdam_sdk::plugin!(run_code);

fn run_with(host: Rc<dyn Host>, input: &Input<'_>) -> Result<Content, ToolFailure> {
    INTERPRETER.with(|cell| {
        if cell.get().is_none() {
            let interpreter = Interpreter::new()
                .map_err(|_| ToolFailure::new("the interpreter could not be started"))?;
            let _ = cell.set(interpreter);
        }
        let Some(interpreter) = cell.get() else {
            return Err(ToolFailure::new("the interpreter could not be started"));
        };
        run(interpreter, host, input)
            .map(Content::Json)
            .map_err(|(failure, logs)| failure.into_tool_failure(&logs))
    })
}

/// Programs that use most parts of the interpreter, so that they are set up in the snapshot.
const WARM_UP: [&str; 2] = [
    "1 + 1",
    "const values: number[] = [1, 2];\n\
     console.log(values, 'a');\n\
     const results = await Promise.all(values.map((n) => tools.warm_up({ n })));\n\
     ({ results, at: new Date() })",
];

/// Host of the warm-up: every call ends with a small value.
#[derive(Default)]
struct Idle {
    started: Cell<u32>,
    ended: Cell<u32>,
}

impl Host for Idle {
    fn start(&self, _name: &str, _arguments: &str) -> u32 {
        self.started.set(self.started.get() + 1);
        self.started.get()
    }

    fn wait_any(&self) -> Vec<EndedCall> {
        let calls = self.ended.get() + 1..=self.started.get();
        self.ended.set(self.started.get());
        let items = || Ok(vec![Content::Json("{\"a\":1}".to_owned())]);
        calls.map(|call| EndedCall { call, outcome: items() }).collect()
    }
}

struct Snapshot;

impl bindings::Guest for Snapshot {
    /// Sets everything up. The memory that this leaves is the one that every run begins with.
    #[allow(clippy::panic, reason = "a failure must end the build")]
    fn wizer_initialize() {
        let catalog = r#"{"tools":[{"name":"warm_up","id":"warm_up","properties":["n"],"required":["n"],"closed":true}]}"#;
        for code in WARM_UP {
            let input = Input { code, catalog, seed: 0, now: 0 };
            if let Err(failure) = run_with(Rc::new(Idle::default()), &input) {
                panic!("the warm-up failed: {failure}");
            }
        }
        INTERPRETER.with(|cell| {
            if let Some(interpreter) = cell.get() {
                interpreter.context.runtime().run_gc();
            }
        });
    }
}

bindings::export!(Snapshot with_types_in bindings);
