//! The tools that rows call, by their fixed names.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_agent::Clock;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::invoke::ToolChangeError;
use cofferdam_tool::{
    Arguments, CallContext, Completion, ErrorType, Functions, ToolCall, ToolDefinition, ToolError,
    ToolSource, Toolset,
};
use serde_json::{Value, json};

use crate::conformance::results;
use crate::module::{Answer, Definition, Module};

/// Runtime of all rows, and the tools that are plugins.
pub(in crate::conformance) struct World {
    pub(in crate::conformance) runtime: tokio::runtime::Runtime,
    trap: Arc<dyn ToolSource>,
    refuse: Arc<dyn ToolSource>,
}

pub(in crate::conformance) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let plugins = results::world();
        let plugin = |name: &str, body: &str, answer: Answer<'_>| {
            let definitions = vec![Definition::new(name)];
            let module = Module { definitions, body, answer, ..Module::default() };
            let fixture = plugins.run(plugins.module(module));
            Arc::clone(fixture.toolset.source(name).unwrap())
        };
        let failure = Answer::Failure {
            message: "no such order",
            suggestion: Some("list orders"),
            transient: None,
            value: None,
        };
        World {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            trap: plugin("trap", "unreachable", Answer::default()),
            refuse: plugin("refuse", "", failure),
        }
    })
}

/// The tools of one row, with their common state. Clones share it.
#[derive(Clone)]
pub(in crate::conformance) struct Tools {
    inner: Arc<Inner>,
}

struct Inner {
    log: Mutex<Vec<String>>,
    /// Error that `loader2` received.
    refusal: Mutex<Option<ToolChangeError>>,
    calls: AtomicUsize,
    start: Instant,
    passed_ms: AtomicU64,
}

impl Clock for Tools {
    fn now(&self) -> Instant {
        self.inner.start + Duration::from_millis(self.inner.passed_ms.load(Ordering::SeqCst))
    }
}

impl Tools {
    pub(in crate::conformance) fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                log: Mutex::default(),
                refusal: Mutex::default(),
                calls: AtomicUsize::new(0),
                start: Instant::now(),
                passed_ms: AtomicU64::new(0),
            }),
        }
    }

    /// Returns the calls since the last time, and clears the log.
    pub(in crate::conformance) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.log.lock().unwrap())
    }

    /// Returns the error for which `loader2` could add no tool.
    pub(in crate::conformance) fn refusal(&self) -> Option<String> {
        self.inner.refusal.lock().unwrap().as_ref().map(ToString::to_string)
    }

    /// Returns a toolset of these tools, and the definitions of the tools that are only declared.
    pub(in crate::conformance) fn toolset(
        &self,
        names: &[String],
    ) -> Result<(Toolset, Option<ToolDefinition>), String> {
        let (mut toolset, mut declared) = (Toolset::new(), None);
        for name in names {
            if name == "decl" {
                declared = Some(declaration("decl")?.compile().map_err(|error| error.to_string())?);
                continue;
            }
            toolset.add(self.source(name)?).map_err(|error| error.to_string())?;
        }
        Ok((toolset, declared))
    }

    /// Returns one of the tools as a source.
    pub(in crate::conformance) fn source(&self, name: &str) -> Result<Arc<dyn ToolSource>, String> {
        let plugin = match name {
            "trap" => &world().trap,
            "refuse" => &world().refuse,
            _ => return self.function(&[name]),
        };
        Ok(Arc::new(Logged { source: Arc::clone(plugin), tools: self.clone() }))
    }

    /// Returns functions of the host as one source.
    fn function(&self, names: &[&str]) -> Result<Arc<dyn ToolSource>, String> {
        let mut functions = Functions::new(names.join("-"));
        for name in names {
            let (tools, called) = (self.clone(), (*name).to_owned());
            let added = functions.with(declaration(name)?, move |arguments, context| {
                let (tools, called) = (tools.clone(), called.clone());
                async move { tools.call(&called, &arguments, &context).await }
            });
            functions = added.map_err(|error| error.to_string())?;
        }
        Ok(Arc::new(functions))
    }

    fn log(&self, line: impl Into<String>) {
        self.inner.log.lock().unwrap().push(line.into());
    }

    async fn call(
        &self,
        name: &str,
        arguments: &Arguments,
        context: &CallContext,
    ) -> Result<Value, FunctionEnd> {
        let of = |name: &str| &arguments.value()[name];
        let text = |name: &str| of(name).as_str().unwrap_or_default().to_owned();
        let number = |name: &str| of(name).as_i64().unwrap_or_default();
        let raise = |detail: &str| {
            Err(FunctionEnd::Error(Box::new(ToolError::host("RuntimeError").with_detail(detail))))
        };
        match name {
            "add" => self.log(format!("add({},{})", number("a"), number("b"))),
            "slow" => self.log(format!("slow({})", text("tag"))),
            "tick" => self.log(format!("tick({})", number("ms"))),
            "needs" => self.log(format!("needs({})", number("x"))),
            "sleep" => {}
            other => self.log(other),
        }
        let run = context.run.as_ref();
        match name {
            "add" => Ok(json!((number("a") + number("b")).to_string())),
            "echo" => Ok(json!(text("text"))),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(json!(text("tag")))
            }
            "sleep" => {
                self.log(format!("start {}", text("tag")));
                tokio::time::sleep(Duration::from_millis(number("ms").unsigned_abs())).await;
                self.log(format!("end {}", text("tag")));
                Ok(json!(text("tag")))
            }
            "none" => Ok(Value::Null),
            "boom" => raise("secret detail"),
            "bang" => raise("other detail"),
            "flaky" => match self.inner.calls.fetch_add(1, Ordering::SeqCst) % 2 {
                0 => raise("odd"),
                _ => Ok(json!("ok")),
            },
            "stop" => {
                if let Some(run) = run {
                    run.terminate();
                }
                Ok(json!("stopping"))
            }
            "tick" => {
                self.inner.passed_ms.fetch_add(number("ms").unsigned_abs(), Ordering::SeqCst);
                Ok(json!("tocked"))
            }
            "loader" | "loader2" => {
                let names: &[&str] =
                    if name == "loader" { &["none"] } else { &["none", "loader2"] };
                let added = self.function(names).map_err(FunctionEnd::failure)?;
                let added = run.map(|run| run.add_tools(added));
                *self.inner.refusal.lock().unwrap() = added.and_then(Result::err);
                Ok(json!("loaded"))
            }
            "remover" => {
                run.map(|run| run.remove_tools(&["no_such_tool"]));
                Ok(json!("removed"))
            }
            "timeout_twice" => match self.inner.calls.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => Err(FunctionEnd::Error(Box::new(ToolError::new(ErrorType::Timeout)))),
                _ => Ok(json!("ok")),
            },
            "dropper" => {
                run.map(|run| run.remove_tools(&["none"]));
                Ok(json!("removed"))
            }
            "needs" => Ok(json!(format!("did {}", number("x")))),
            other => raise(&format!("unknown tool `{other}`")),
        }
    }
}

fn declaration(name: &str) -> Result<Declaration, String> {
    let integer = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let (properties, required) = match name {
        "add" => (json!({"a": integer, "b": integer}), json!(["a", "b"])),
        "echo" => (json!({"text": text}), json!(["text"])),
        "slow" => (json!({"tag": text}), json!(["tag"])),
        "sleep" => (json!({"tag": text, "ms": integer}), json!(["tag", "ms"])),
        "tick" => (json!({"ms": integer}), json!(["ms"])),
        "needs" => (json!({"x": integer}), json!(["x"])),
        "decl" => (json!({"q": text}), json!([])),
        "none" | "boom" | "bang" | "flaky" | "stop" | "loader" | "loader2" | "dropper"
        | "remover" | "timeout_twice" => (json!({}), json!([])),
        other => return Err(format!("unknown tool `{other}`")),
    };
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Ok(Declaration::new(name, "Does what a row needs.", schema.to_string()))
}

/// Plugin whose calls are logged like those of the other tools.
struct Logged {
    source: Arc<dyn ToolSource>,
    tools: Tools,
}

#[async_trait]
impl ToolSource for Logged {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        self.source.definitions()
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        self.tools.log(call.tool.name.as_str());
        self.source.invoke(call, context).await
    }
}
