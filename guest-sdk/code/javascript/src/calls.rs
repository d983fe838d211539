//! Calls of tools: promises that the host settles.

use std::rc::Rc;

use rquickjs::{Ctx, Exception, Function, IntoJs as _, Object, Persistent, Promise, Value};

use crate::catalog::Catalog;
use crate::checks::{DESCRIBE, SEARCH};
use crate::convert::{self, Mode, Unwritable, define};
use crate::engine::{Arguments, hidden};
use crate::host::CallError;
use crate::prepare::Tools;
use crate::run::with_run;

/// Maximum size of a call's arguments.
const ARGUMENTS_BYTES_MAX: usize = 1 << 20;
/// Maximum number of calls that have not ended. The host's limit is lower; this one bounds the
/// memory of a program that never waits.
const PENDING_MAX: usize = 1000;

/// A call that has not ended.
pub(crate) struct Pending {
    call: u32,
    /// Identifier of the tool in the program.
    pub(crate) tool: Rc<str>,
    /// Error that was created where the call is, so that it knows the line.
    pub(crate) error: Persistent<Object<'static>>,
    resolve: Persistent<Function<'static>>,
    reject: Persistent<Function<'static>>,
}

/// Rejected promise without a handler.
pub(crate) struct Rejected {
    promise: Persistent<Value<'static>>,
    pub(crate) reason: Persistent<Value<'static>>,
}

/// Installs `store` and `load`.
pub(crate) fn install(globals: &Object<'_>) -> rquickjs::Result<()> {
    let ctx = globals.ctx();
    let store = Function::new(ctx.clone(), store)?.with_name("store")?;
    hidden(globals, "store", store)?;
    let load = Function::new(ctx.clone(), load)?.with_name("load")?;
    hidden(globals, "load", load)
}

/// Defines `tools` with the tools that a program can reach.
pub(crate) fn define_tools<'js, 'c>(
    ctx: &Ctx<'js>,
    tools: &Tools,
    catalog: &dyn Fn() -> &'c Catalog,
) -> rquickjs::Result<()> {
    let names = match tools {
        Tools::Named(names) if names.is_empty() => return Ok(()),
        Tools::Named(names) => Some(names),
        Tools::All => None,
    };
    // Without a prototype, so that a tool can have any name.
    let object = Object::new_proto(ctx.clone(), None)?;
    let is_used = |id: &str| names.is_none_or(|names| names.iter().any(|name| name == id));
    let is_only_search = names
        .is_some_and(|names| names.iter().all(|name| matches!(name.as_str(), SEARCH | DESCRIBE)));
    if !is_only_search {
        for tool in catalog().tools.iter().filter(|tool| is_used(&tool.id)) {
            define(&object, tool.id.as_str(), function(ctx, &tool.id, &tool.name)?.into_value())?;
        }
    }
    for (id, argument, name) in
        [(SEARCH, "query", "cofferdam_code_search"), (DESCRIBE, "name", "cofferdam_code_describe")]
    {
        if is_used(id) {
            let function =
                Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Arguments<'js>| {
                    with_text_argument(&ctx, id, name, argument, values.0.into_iter().next())
                })?;
            hidden(&object, id, function.with_name(id)?)?;
        }
    }
    hidden_value(&ctx.globals(), "tools", object.into_value())
}

fn hidden_value<'js>(object: &Object<'js>, name: &str, value: Value<'js>) -> rquickjs::Result<()> {
    object.prop(name, rquickjs::object::Property::from(value).writable().configurable())
}

fn function<'js>(ctx: &Ctx<'js>, id: &str, name: &str) -> rquickjs::Result<Function<'js>> {
    let tool: Rc<str> = id.into();
    let target = name.to_owned();
    let call = move |ctx: Ctx<'js>, values: Arguments<'js>| {
        let argument = match values.0.into_iter().next() {
            None => None,
            Some(value) if value.is_undefined() || value.is_null() => None,
            Some(value) if value.is_object() && !value.is_array() && !value.is_function() => {
                Some(value)
            }
            Some(_) => {
                let text = format!("tools.{tool} takes one object with named arguments");
                return Err(Exception::throw_type(&ctx, &text));
            }
        };
        start(&ctx, &tool, &target, argument)
    };
    Function::new(ctx.clone(), call)?.with_name(id)
}

/// Calls a tool with one argument, which the program passes as it is or in an object.
fn with_text_argument<'js>(
    ctx: &Ctx<'js>,
    id: &'static str,
    name: &str,
    argument: &str,
    value: Option<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let value = match value {
        Some(value) if value.is_object() => value,
        value => object(ctx, &[(argument, value)])?,
    };
    start(ctx, &format!("tools.{id}").into(), name, Some(value))
}

fn store<'js>(ctx: Ctx<'js>, values: Arguments<'js>) -> rquickjs::Result<Value<'js>> {
    let mut values = values.0.into_iter();
    let arguments = object(&ctx, &[("key", values.next()), ("value", values.next())])?;
    start(&ctx, &"store".into(), "cofferdam_code_store", Some(arguments))
}

fn load<'js>(ctx: Ctx<'js>, values: Arguments<'js>) -> rquickjs::Result<Value<'js>> {
    let arguments = object(&ctx, &[("key", values.0.into_iter().next())])?;
    start(&ctx, &"load".into(), "cofferdam_code_load", Some(arguments))
}

fn object<'js>(
    ctx: &Ctx<'js>,
    members: &[(&str, Option<Value<'js>>)],
) -> rquickjs::Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, value) in members {
        let value = value.clone().unwrap_or_else(|| Value::new_null(ctx.clone()));
        define(&object, *name, value)?;
    }
    Ok(object.into_value())
}

/// Starts a call and returns its promise.
fn start<'js>(
    ctx: &Ctx<'js>,
    tool: &Rc<str>,
    name: &str,
    arguments: Option<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let (saved, host, pending) =
        with_run(|run| (Rc::clone(&run.saved), Rc::clone(&run.host), run.pending.len()));
    let intrinsics = saved.restore(ctx)?;
    let json = match &arguments {
        None => "{}".to_owned(),
        Some(value) => convert::json(value, &intrinsics, ARGUMENTS_BYTES_MAX, Mode::Exact)
            .map_err(|error| refuse(ctx, tool, error))?,
    };
    let error: Object<'js> = intrinsics.tool_error.construct(("",))?;
    if pending >= PENDING_MAX {
        let limit = CallError {
            code: "limit",
            message: format!("{PENDING_MAX} calls are running; await some of them first"),
            ..CallError::default()
        };
        describe(ctx, &error, tool, &limit)?;
        return Err(ctx.throw(error.into_value()));
    }
    let (promise, resolve, reject) = ctx.promise()?;
    let pending = Pending {
        call: host.start(name, &json),
        tool: Rc::clone(tool),
        error: Persistent::save(ctx, error),
        resolve: Persistent::save(ctx, resolve),
        reject: Persistent::save(ctx, reject),
    };
    with_run(|run| run.pending.push(pending));
    Ok(promise.into_value())
}

/// Throws the error for arguments that have no JSON.
fn refuse(ctx: &Ctx<'_>, tool: &str, error: Unwritable) -> rquickjs::Error {
    let text = match error {
        Unwritable::Thrown(error) => return error,
        Unwritable::Circular(_) => "a value contains itself".to_owned(),
        Unwritable::Promise(_) => "a value is a promise; await it first".to_owned(),
        Unwritable::Deep(_) => "a value is nested too deeply".to_owned(),
        Unwritable::Long => "they are larger than 1 MiB".to_owned(),
    };
    Exception::throw_type(ctx, &format!("the arguments of `{tool}` cannot be sent: {text}"))
}

/// Waits for calls and settles their promises. Returns false if no call is running.
pub(crate) fn settle(ctx: &Ctx<'_>) -> rquickjs::Result<bool> {
    let host = with_run(|run| Rc::clone(&run.host));
    let ended = host.wait_any();
    let is_empty = ended.is_empty();
    for ended in ended {
        let pending = with_run(|run| {
            let at = run.pending.iter().position(|pending| pending.call == ended.call)?;
            Some(run.pending.remove(at))
        });
        let Some(pending) = pending else { continue };
        let error = pending.error.restore(ctx)?;
        let value = match ended.outcome {
            Ok(items) => convert::value_of(ctx, items),
            Err(failed) => {
                describe(ctx, &error, &pending.tool, &failed)?;
                Err(ctx.throw(error.into_value()))
            }
        };
        match value {
            Ok(value) => pending.resolve.restore(ctx)?.call::<_, ()>((value,))?,
            Err(_) => pending.reject.restore(ctx)?.call::<_, ()>((ctx.catch(),))?,
        }
    }
    Ok(!is_empty)
}

/// Fills in the error of a call.
fn describe<'js>(
    ctx: &Ctx<'js>,
    error: &Object<'js>,
    tool: &str,
    failed: &CallError,
) -> rquickjs::Result<()> {
    hidden_value(error, "message", failed.message.as_str().into_js(ctx)?)?;
    define(error, "tool", tool.into_js(ctx)?)?;
    define(error, "code", failed.code.into_js(ctx)?)?;
    define(error, "suggestion", failed.suggestion.as_deref().into_js(ctx)?)?;
    let value = match &failed.value {
        Some(json) => ctx.json_parse(json.as_str())?,
        None => Value::new_undefined(ctx.clone()),
    };
    define(error, "value", value)
}

/// Keeps promises that are rejected and have no handler, until they get one.
pub(crate) fn track_rejection<'js>(
    ctx: Ctx<'js>,
    promise: Value<'js>,
    reason: Value<'js>,
    is_handled: bool,
) {
    let promise = Persistent::save(&ctx, promise);
    let reason = Persistent::save(&ctx, reason);
    let forgotten = with_run(|run| {
        let same = |other: &Rejected| other.promise == promise;
        if !is_handled {
            run.rejected.push(Rejected { promise, reason });
            return None;
        }
        let at = run.rejected.iter().position(same);
        at.map(|at| run.rejected.remove(at))
    });
    drop(forgotten);
}

/// Returns a random number from the run's seed: `xorshift64*`.
pub(crate) fn random() -> f64 {
    with_run(|run| {
        let mut state = run.random;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        run.random = state;
        let bits = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        #[allow(clippy::cast_precision_loss, reason = "53 bits")]
        let number = bits as f64 / (1_u64 << 53) as f64;
        number
    })
}

/// Returns whether a promise is settled.
pub(crate) fn is_settled(promise: &Promise<'_>) -> bool {
    !matches!(promise.state(), rquickjs::promise::PromiseState::Pending)
}
