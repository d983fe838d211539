//! The QuickJS runtime with everything that is the same in all runs. It is part of the snapshot that
//! every run starts from.

use std::rc::Rc;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::{Constructor, Rest};
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime, Value};

use crate::{calls, console, convert, timers};

/// Limit of the program's objects. The rest of the 128 MiB that a program has by default is for the
/// parser and for texts on their way to and from the host.
const MEMORY_BYTES_MAX: usize = 96 << 20;
/// Limit of the stack in linear memory, at which recursion ends as a `RangeError`. The stack of
/// WebAssembly, which traps when it is full, is in proportion to it: see `quickjs_config.h`.
const STACK_BYTES_MAX: usize = if cfg!(target_arch = "wasm32") { 256 << 10 } else { 1 << 20 };
/// Size of all objects at which garbage in cycles is first searched for. Most runs end before that.
const GARBAGE_BYTES: usize = 8 << 20;

/// Name of the program in stack traces.
pub(crate) const FILE: &str = "program";

/// The class of errors of tools.
const TOOL_ERROR: &str = r#"(() => {
    class ToolError extends Error {
        constructor(message, options) {
            super(message, options);
        }
    }
    Object.defineProperty(ToolError.prototype, "name", {
        value: "ToolError", configurable: true, enumerable: false, writable: true,
    });
    return ToolError;
})()"#;

type Intrinsic = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// A runtime that can run one program.
pub struct Interpreter {
    // Before the runtime, which must be dropped last.
    pub(crate) saved: Rc<Saved>,
    pub(crate) context: Context,
}

/// Functions that the program may replace, as they were before it ran.
pub(crate) struct Saved {
    date_text: Persistent<Function<'static>>,
    map_for_each: Persistent<Function<'static>>,
    set_for_each: Persistent<Function<'static>>,
    tool_error: Persistent<Constructor<'static>>,
}

/// [`Saved`] in use.
pub(crate) struct Intrinsics<'js> {
    pub(crate) date_text: Function<'js>,
    pub(crate) map_for_each: Function<'js>,
    pub(crate) set_for_each: Function<'js>,
    pub(crate) tool_error: Constructor<'js>,
}

impl Intrinsics<'_> {
    /// Returns the values of a map or a set with their keys.
    pub(crate) fn entries<'js>(
        &self,
        for_each: &Function<'js>,
        collection: &Value<'js>,
    ) -> rquickjs::Result<Vec<(Value<'js>, Value<'js>)>> {
        convert::entries(collection.ctx(), for_each, collection)
    }
}

impl Interpreter {
    /// Creates a runtime.
    ///
    /// # Errors
    /// An error of the engine, which means that memory is exhausted.
    pub fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(MEMORY_BYTES_MAX);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        runtime.set_gc_threshold(GARBAGE_BYTES);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(calls::track_rejection)));
        let context = Context::custom::<Intrinsic>(&runtime)?;
        let saved = context.with(|ctx| set_up(&ctx))?;
        Ok(Self { saved: Rc::new(saved), context })
    }
}

impl Saved {
    /// Returns the functions for use.
    pub(crate) fn restore<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Intrinsics<'js>> {
        Ok(Intrinsics {
            date_text: self.date_text.clone().restore(ctx)?,
            map_for_each: self.map_for_each.clone().restore(ctx)?,
            set_for_each: self.set_for_each.clone().restore(ctx)?,
            tool_error: self.tool_error.clone().restore(ctx)?,
        })
    }
}

/// Evaluates a script.
pub(crate) fn evaluate<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    file: &str,
    text: &str,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(file.to_owned());
    ctx.eval_with_options(text, options)
}

fn set_up(ctx: &Ctx<'_>) -> rquickjs::Result<Saved> {
    let globals = ctx.globals();
    console::install(&globals)?;
    timers::install(&globals)?;
    calls::install(&globals)?;
    let math: Object<'_> = globals.get("Math")?;
    hidden(&math, "random", Function::new(ctx.clone(), calls::random)?)?;
    let tool_error: Constructor<'_> = evaluate(ctx, "interpreter", TOOL_ERROR)?;
    hidden(&globals, "ToolError", tool_error.clone().into_inner())?;
    let method = |class: &str, name: &str| -> rquickjs::Result<Persistent<Function<'static>>> {
        let class: Object<'_> = globals.get(class)?;
        let prototype: Object<'_> = class.get("prototype")?;
        Ok(Persistent::save(ctx, prototype.get::<_, Function<'_>>(name)?))
    };
    Ok(Saved {
        date_text: method("Date", "toISOString")?,
        map_for_each: method("Map", "forEach")?,
        set_for_each: method("Set", "forEach")?,
        tool_error: Persistent::save(ctx, tool_error),
    })
}

/// Defines a property that is not enumerable.
pub(crate) fn hidden<'js>(
    object: &Object<'js>,
    name: &str,
    function: Function<'js>,
) -> rquickjs::Result<()> {
    let property = rquickjs::object::Property::from(function).writable().configurable();
    object.prop(name, property)
}

/// Arguments of a function that is called by a program.
pub(crate) type Arguments<'js> = Rest<Value<'js>>;
