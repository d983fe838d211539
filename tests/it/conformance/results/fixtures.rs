//! Situations, by the fixed words of the rows.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_engine::{
    Component, Engine, EngineConfig, Grants, Plugin, PluginOptions, UnavailablePlugin,
};
use cofferdam_tests::{config, guest, shared_cache};
use cofferdam_tool::retry::{RetryPolicy, RetryingSource};
use cofferdam_tool::{
    Annotations, CallContext, Completion, InputSchema, Limits, Outcome, PluginName, ToolCall,
    ToolDefinition, ToolName, ToolSource, Toolset,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::module::{Answer, Item, Module};

/// Wall-clock limit for a call that must reach it, in milliseconds.
const SHORT_MS: u64 = 60;
/// A budget that a loop exhausts within milliseconds, but that suffices for any answer.
const FUEL: u64 = 20_000_000;

/// A tool that behaves as a row says.
pub(in crate::conformance) struct Fixture {
    pub(in crate::conformance) toolset: Toolset,
    pub(in crate::conformance) tool: String,
    arguments: String,
    /// Result of the tool, if a row calls it `the value`.
    pub(in crate::conformance) value: Option<Value>,
}

impl Fixture {
    pub(in crate::conformance) fn new(
        source: Arc<dyn ToolSource>,
        tool: &str,
        arguments: Value,
    ) -> Self {
        let mut toolset = Toolset::new();
        toolset.add(source).expect("one source has unique names");
        Self { toolset, tool: tool.to_owned(), arguments: arguments.to_string(), value: None }
    }

    /// Returns the arguments that its call needs.
    pub(in crate::conformance) fn arguments(&self) -> Value {
        serde_json::from_str(&self.arguments).expect("arguments are JSON")
    }

    pub(in crate::conformance) async fn call(&self, context: &CallContext) -> Completion {
        let called = self.toolset.call(&self.tool, Some(self.arguments.as_bytes()), context).await;
        called.expect("the call starts")
    }
}

/// Engine and runtime of all rows.
pub(in crate::conformance) struct World {
    runtime: tokio::runtime::Runtime,
    engine: Engine,
}

impl World {
    pub(in crate::conformance) fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let mut config: EngineConfig = config();
        config.cache_directory = Some(shared_cache());
        config.pool.concurrent_calls_max = 4;
        Self {
            runtime: runtime.expect("the runtime starts"),
            engine: Engine::new(config).expect("the engine starts"),
        }
    }

    pub(in crate::conformance) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    async fn try_load(
        &self,
        component: &Component,
        limits: Limits,
    ) -> Result<Plugin, cofferdam_engine::LoadError> {
        let options = PluginOptions::new(plugin_name(), Grants::default(), limits);
        self.engine.load(component, options, &()).await
    }

    async fn load(&self, component: &Component, limits: Limits) -> Arc<dyn ToolSource> {
        let loaded = self.try_load(component, limits).await;
        Arc::new(loaded.unwrap_or_else(|error| panic!("does not load: {error}")))
    }

    /// Returns a tool of the sample plugin that crashes on demand.
    pub(in crate::conformance) async fn crash(
        &self,
        tool: &str,
        arguments: Value,
        limits: Limits,
    ) -> Fixture {
        let component = Component::from_file_ambient(guest("crash"));
        Fixture::new(self.load(&component, limits).await, tool, arguments)
    }

    async fn program(&self, name: &str) -> Fixture {
        let component = Component::from_file_ambient(guest(name));
        Fixture::new(self.load(&component, Limits::default()).await, name, json!({}))
    }

    pub(in crate::conformance) async fn module(&self, module: Module<'_>) -> Fixture {
        self.limited(module, Limits::default()).await
    }

    async fn limited(&self, module: Module<'_>, limits: Limits) -> Fixture {
        let component = Component::from_bytes(module.component());
        Fixture::new(self.load(&component, limits).await, "t", json!({}))
    }

    async fn body(&self, body: &str) -> Fixture {
        self.module(Module { fields: TABLE, body, ..Module::default() }).await
    }

    async fn answer(&self, item: Item<'_>) -> Fixture {
        self.module(Module { answer: Answer::Contents(vec![item]), ..Module::default() }).await
    }

    /// Returns a known tool of a plugin that no longer loads.
    async fn unavailable(&self, wat: &str) -> Fixture {
        let known = self.body("").await.toolset.definitions().cloned().collect();
        let broken = Component::from_bytes(wat::parse_str(wat).expect("well-formed text"));
        let Err(error) = self.try_load(&broken, Limits::default()).await else {
            panic!("the component loads")
        };
        Fixture::new(Arc::new(UnavailablePlugin::new(plugin_name(), known, &error)), "t", json!({}))
    }

    /// Returns a plugin that is known from the cache, and whose file has changed since.
    async fn changed(&self) -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plugin.wasm");
        std::fs::copy(guest("crash"), &path).expect("a copy");
        let component = Component::from_file_ambient(&path);
        self.load(&component, Limits::default()).await;
        let lazy = self.load(&component, Limits::default()).await;
        std::fs::copy(guest("text"), &path).expect("another copy");
        let fixture = Fixture::new(lazy, "ok", json!({}));
        // The call needs the file, so the folder is not removed.
        let _path = folder.keep();
        fixture
    }
}

fn plugin_name() -> PluginName {
    PluginName::new("guest").expect("a constant name")
}

fn short() -> Limits {
    Limits { wall_ms_max: SHORT_MS, ..Limits::default() }
}

pub(in crate::conformance) fn counted() -> Limits {
    Limits { fuel_max: Some(FUEL), ..Limits::default() }
}

const TABLE: &str = "
    (type $plain (func))
    (type $other (func (param i32)))
    (table $table 4 funcref)
    (func $function)
    (elem (table $table) (i32.const 0) func $function)
    (tag $tag (param i32))";

const SOCKETS: &str = "
    package wasi:sockets@0.2.0;
    interface network { resource network; }
    interface instance-network { use network.{network}; instance-network: func() -> network; }";

const CLOCKS: &str = "
    package test:clocks;
    package wasi:io@0.2.0 { interface poll { resource pollable { block: func(); } } }
    package wasi:clocks@0.2.0 {
        interface monotonic-clock {
            use wasi:io/poll@0.2.0.{pollable};
            subscribe-duration: func(when: u64) -> pollable;
        }
    }";

/// Denied by stopping the call: the type of the function has no error.
fn uses_the_network() -> Module<'static> {
    Module {
        wit: SOCKETS,
        world: "import wasi:sockets/instance-network@0.2.0;",
        imports: r#"(import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))"#,
        body: "(drop (call $network))",
        ..Module::default()
    }
}

/// Waits for a timer in a single host call.
fn blocks() -> Module<'static> {
    Module { body: "(call $block (call $subscribe (i64.const 1000000000000)))", ..hoards_timers() }
}

fn hoards_timers() -> Module<'static> {
    Module {
        wit: CLOCKS,
        world: "import wasi:clocks/monotonic-clock@0.2.0;",
        imports: r#"
            (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
              (func $subscribe (param i64) (result i32)))
            (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#,
        body: "(loop $again (drop (call $subscribe (i64.const 1000000000000))) (br $again))",
        ..Module::default()
    }
}

/// Returns the fixture of a word under `does` in `guest` rows.
pub(in crate::conformance) async fn does(world: &World, word: &str) -> Result<Fixture, String> {
    let default = Limits::default;
    let crash = async |tool: &str, arguments: Value| world.crash(tool, arguments, default()).await;
    Ok(match word {
        "executes unreachable" | "traps" => crash("unreachable", json!({})).await,
        "panics with the message secret" => crash("panic", json!({"message": "secret"})).await,
        "aborts" => crash("abort", json!({})).await,
        "recurses without end" => crash("stack_overflow", json!({})).await,
        "loads past the end of memory" => crash("out_of_bounds", json!({})).await,
        "stores past the end of memory" => {
            world.body("(i32.store (i32.const -8) (i32.const 1))").await
        }
        "divides by zero" => crash("divide_by_zero", json!({})).await,
        "remainder by zero" => world.body("(drop (i32.rem_u (i32.const 7) (i32.const 0)))").await,
        "divides the smallest integer by -1" => {
            world.body("(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))").await
        }
        "truncates NaN to an integer" => {
            world.body("(drop (i32.trunc_f64_s (f64.const nan)))").await
        }
        "calls past the end of a table" => {
            world.body("(call_indirect $table (type $plain) (i32.const 9))").await
        }
        "indirect call through a null entry" => {
            world.body("(call_indirect $table (type $plain) (i32.const 1))").await
        }
        "indirect call with another signature" => {
            world.body("(call_indirect $table (type $other) (i32.const 0) (i32.const 0))").await
        }
        "misaligned atomic" => world.body("(drop (i32.atomic.load (i32.const 1)))").await,
        "throws and does not catch" => world.body("(throw $tag (i32.const 1))").await,
        "a trap the table does not name" => {
            world
                .body("(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const 0)))")
                .await
        }
        "calls exit" | "exits with code 0" => crash("exit", json!({"code": 0})).await,
        "exits with code 3" => crash("exit", json!({"code": 3})).await,
        "loops for ever" => world.crash("spin", json!({}), counted()).await,
        "sleeps longer than the wall-clock limit" | "times out" => {
            world.crash("sleep", json!({"ms": 60_000}), short()).await
        }
        "blocks in a host call past the wall-clock limit" => world.limited(blocks(), short()).await,
        "grows memory past the limit and aborts" => {
            crash("allocate", json!({"mebibytes": 1000})).await
        }
        "memory growth refused, handles it, returns \"ok\"" => {
            crash("grow_handled", json!({})).await
        }
        "opens more handles than allowed" => world.module(hoards_timers()).await,
        "is stopped at an ungranted capability" => world.module(uses_the_network()).await,
        "is refused a capability, handles it, returns \"ok\"" => world.program("connects").await,
        "cannot be compiled" => {
            world.unavailable("(component (core module (func (result i32))))").await
        }
        "component imports something the host does not offer" => {
            world.unavailable(r#"(component (import "my:own/thing@1.0.0" (instance)))"#).await
        }
        "digest does not match" => world.changed().await,
        "returns more bytes than allowed" => crash("huge_output", json!({"bytes": 4 << 20})).await,
        "result is exactly at the limit" => sized(world, Limits::default().output_bytes_max).await,
        "result is one byte over the limit" => {
            sized(world, Limits::default().output_bytes_max + 1).await
        }
        "returns text that is not JSON" => crash("invalid_json", json!({})).await,
        "result text has a trailing comma" => world.answer(Item::Json("{\"a\":1,}")).await,
        "result is nested 129 levels deep" => {
            world.answer(Item::Json(&("[".repeat(129) + &"]".repeat(129)))).await
        }
        "result is not UTF-8" => world.answer(Item::Text(b"\xff\xfe")).await,
        "result breaks the declared output schema" => {
            let schema =
                r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
            let answer = Answer::Contents(vec![Item::Json(r#"{"n":"1"}"#)]);
            world.module(Module { output_schema: Some(schema), answer, ..Module::default() }).await
        }
        other => return Err(format!("unknown situation `{other}`")),
    })
}

/// Returns a tool whose result is JSON of exactly `bytes` bytes.
async fn sized(world: &World, bytes: u64) -> Fixture {
    let text = "x".repeat(usize::try_from(bytes).expect("a size") - 2);
    let json = format!("\"{text}\"");
    let fixture = world.answer(Item::Json(&json)).await;
    Fixture { value: Some(Value::String(text)), ..fixture }
}

/// A tool whose n-th call is the n-th fixture, and every further one the last.
struct Steps {
    definitions: Arc<[Arc<ToolDefinition>]>,
    steps: Vec<Fixture>,
    calls: AtomicUsize,
    /// Token that is cancelled when the first call has ended.
    cancel: Option<CancellationToken>,
}

#[async_trait]
impl ToolSource for Steps {
    fn name(&self) -> &str {
        "steps"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, _: ToolCall<'_>, context: &CallContext) -> Completion {
        let index = self.calls.fetch_add(1, Ordering::Relaxed).min(self.steps.len() - 1);
        let completion = self.steps[index].call(context).await;
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
        completion
    }
}

/// Returns the fixture of a word in `retry` rows, and the context of its call. The part after the
/// semicolon is the policy.
pub(in crate::conformance) async fn retried(
    world: &World,
    word: &str,
) -> Result<(Fixture, CallContext), String> {
    let (story, policy) = word.rsplit_once("; ").ok_or("the situation names no retry policy")?;
    let retries_max = match policy.strip_suffix(" retries").or(policy.strip_suffix(" retry")) {
        Some(count) => count.parse().map_err(|_| format!("unknown retry policy `{policy}`"))?,
        None if policy == "default" => RetryPolicy::default().backoff.retries_max,
        None => return Err(format!("unknown retry policy `{policy}`")),
    };
    let times_out = async || does(world, "times out").await;
    let ok = async || world.crash("ok", json!({}), Limits::default()).await;
    let fails = async |transient| {
        let answer = Answer::Failure {
            message: "nope",
            suggestion: None,
            transient: Some(transient),
            value: None,
        };
        world.module(Module { answer, ..Module::default() }).await
    };
    let cancelled = story == "times out, cancelled while waiting for the retry";
    let steps = match story {
        "times out twice, then \"ok\"" => vec![times_out().await?, times_out().await?, ok().await],
        "always times out" | "times out" => vec![times_out().await?],
        "times out, cancelled while waiting for the retry" => vec![times_out().await?, ok().await],
        "traps" => vec![does(world, "traps").await?],
        "reports a failure marked not transient" => vec![fails(false).await],
        "reports a failure marked transient, then \"ok\"" => vec![fails(true).await, ok().await],
        other => return Err(format!("unknown situation `{other}`")),
    };
    let context = CallContext::new(word);
    let pause = Duration::from_millis(if cancelled { 60_000 } else { 1 });
    let cancel = cancelled.then(|| context.cancellation.clone());
    let steps =
        Steps { definitions: [definition()].into(), steps, calls: AtomicUsize::new(0), cancel };
    let mut policy = RetryPolicy::on_transient(retries_max);
    policy.backoff.pause = pause;
    let retrying = RetryingSource::new(Arc::new(steps), policy);
    Ok((Fixture::new(Arc::new(retrying), "t", json!({})), context))
}

/// Tool of the host that ends in one outcome.
pub(in crate::conformance) struct HostTool(pub(in crate::conformance) Outcome);

#[async_trait]
impl ToolSource for HostTool {
    fn name(&self) -> &str {
        "host"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        [definition()].into()
    }

    async fn invoke(&self, _: ToolCall<'_>, _: &CallContext) -> Completion {
        let mut record = cofferdam_tool::CallRecord::default();
        record.set_outcome(&self.0);
        Completion::new(self.0.clone(), record)
    }
}

fn definition() -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: ToolName::new("t").expect("a constant name"),
        title: None,
        description: String::new(),
        input: Arc::new(
            InputSchema::compile("t", r#"{"type":"object"}"#).expect("a constant schema"),
        ),
        output: None,
        annotations: Annotations::default(),
        group: None,
    })
}

/// Returns a tool of the sample plugin that ends in the named outcome. All of them are tools of one
/// plugin, so that another of its tools can be called afterwards.
pub(in crate::conformance) async fn ends_as(
    world: &World,
    outcome: &str,
) -> Result<Fixture, String> {
    let (tool, arguments, limits) = match outcome {
        "ok" => ("ok", json!({}), Limits::default()),
        "failure" => ("fail", json!({}), Limits::default()),
        "trap" | "error" => ("unreachable", json!({}), Limits::default()),
        "panic with the message secret" => ("panic", json!({"message": "secret"}), counted()),
        "timeout" => ("sleep", json!({"ms": 60_000}), short()),
        "cancelled" | "cancel" | "cancellation" => {
            ("sleep", json!({"ms": 60_000}), Limits::default())
        }
        "invalid_result" => ("invalid_json", json!({}), Limits::default()),
        "exit" | "guest_exit" => ("exit", json!({"code": 0}), Limits::default()),
        "output_limit" => ("huge_output", json!({"bytes": 4 << 20}), Limits::default()),
        "limit" | "memory_limit" => ("allocate", json!({"mebibytes": 1000}), Limits::default()),
        "cpu_limit" => ("spin", json!({}), counted()),
        other => return Err(format!("unknown outcome `{other}`")),
    };
    Ok(world.crash(tool, arguments, limits).await)
}
