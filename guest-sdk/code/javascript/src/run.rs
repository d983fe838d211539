//! One run of a program.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rquickjs::{Ctx, Object, Promise, Value};

use crate::calls::{self, Pending, Rejected};
use crate::catalog::Catalog;
use crate::console::Logs;
use crate::convert::{self, Mode, Unwritable};
use crate::engine::{self, Interpreter, Saved};
use crate::failure::Failure;
use crate::host::Host;
use crate::prepare::{self, Prepared};
use crate::source::Position;
use crate::timers::{self, Timers};

/// Maximum size of a result.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Number of calls that a failure names.
const CALLS_NAMED_MAX: usize = 5;

/// What the host passes to a run.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The program.
    pub code: &'a str,
    /// JSON of the granted tools.
    pub catalog: &'a str,
    /// Seed of random numbers.
    pub seed: u64,
    /// Time of the clock, in milliseconds since 1970.
    pub now: i64,
}

/// State of a run that functions of the program change.
pub(crate) struct Run {
    pub(crate) saved: Rc<Saved>,
    pub(crate) host: Rc<dyn Host>,
    pub(crate) logs: Logs,
    pub(crate) pending: Vec<Pending>,
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) timers: Timers,
    /// Time of the clock in milliseconds.
    pub(crate) now: f64,
    pub(crate) random: u64,
}

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// Accesses the state of the run. `access` must not run the program, and must not drop values of it.
#[allow(clippy::expect_used, reason = "functions of a program are called only while it runs")]
pub(crate) fn with_run<R>(access: impl FnOnce(&mut Run) -> R) -> R {
    RUN.with_borrow_mut(|run| access(run.as_mut().expect("a program runs")))
}

/// Returns the time of the clock in milliseconds, or 0 while the snapshot is made.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "tests use the real clock"))]
pub(crate) fn now() -> f64 {
    RUN.with_borrow(|run| run.as_ref().map_or(0.0, |run| run.now))
}

/// Runs a program. Returns the JSON of its result, or the failure with the logs.
///
/// # Errors
/// [`Failure`], with what the program printed before.
pub fn run(
    interpreter: &Interpreter,
    host: Rc<dyn Host>,
    input: &Input<'_>,
) -> Result<String, (Failure, String)> {
    #[allow(clippy::cast_precision_loss, reason = "exact for 280,000 years")]
    let now = input.now as f64;
    let run = Run {
        saved: Rc::clone(&interpreter.saved),
        host,
        logs: Logs::default(),
        pending: Vec::new(),
        rejected: Vec::new(),
        timers: Timers::default(),
        now,
        // The generator has a period for every state except zero.
        random: input.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
    };
    RUN.replace(Some(run));
    let outcome = interpreter.context.with(|ctx| execute(&ctx, input));
    let mut run = RUN.take();
    let logs = run.as_mut().map(|run| run.logs.finish()).unwrap_or_default();
    if cfg!(target_arch = "wasm32") {
        // The instance ends with the call.
        std::mem::forget(run);
    }
    match outcome {
        Ok(result) if logs.is_empty() => Ok(format!("{{\"result\":{result}}}")),
        Ok(result) => {
            let logs = serde_json::Value::from(logs);
            Ok(format!("{{\"result\":{result},\"logs\":{logs}}}"))
        }
        Err(failure) => Err((failure, logs)),
    }
}

fn execute(ctx: &Ctx<'_>, input: &Input<'_>) -> Result<String, Failure> {
    let parsed: OnceCell<Catalog> = OnceCell::new();
    let catalog = || parsed.get_or_init(|| Catalog::parse(input.catalog));
    let prepared = prepare::prepare(input.code, &catalog)?;
    let program = Program { ctx, code: input.code, prepared: &prepared };
    program.run(&catalog).map_err(|stopped| match stopped {
        Stopped::Failed(failure) => failure,
        Stopped::Thrown(_) => program.uncaught(&ctx.catch()),
    })
}

/// Why a run stopped.
enum Stopped {
    Failed(Failure),
    Thrown(#[allow(dead_code, reason = "shown when debugging")] rquickjs::Error),
}

impl From<rquickjs::Error> for Stopped {
    fn from(error: rquickjs::Error) -> Self {
        Self::Thrown(error)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct Program<'p, 'js> {
    ctx: &'p Ctx<'js>,
    code: &'p str,
    prepared: &'p Prepared,
}

impl<'js> Program<'_, 'js> {
    fn run<'c>(&self, catalog: &dyn Fn() -> &'c Catalog) -> Result<String, Stopped> {
        let ctx = self.ctx;
        calls::define_tools(ctx, &self.prepared.tools, catalog)?;
        let promise: Promise<'js> =
            engine::evaluate(ctx, engine::FILE, &self.prepared.changed.text)?;
        self.drive(&promise)?;
        let value = match promise.result::<Value<'js>>() {
            Some(value) => value?,
            None => return Err(stuck().into()),
        };
        let result = self.json(&value)?;
        self.check_pending()?;
        self.check_rejected()?;
        Ok(result)
    }

    /// Runs jobs, calls and timers until the program has ended or nothing is left to do.
    fn drive(&self, promise: &Promise<'js>) -> Result<(), Stopped> {
        loop {
            while self.ctx.execute_pending_job() {}
            if calls::is_settled(promise) {
                return Ok(());
            }
            let has_calls = with_run(|run| !run.pending.is_empty());
            let goes_on = match has_calls {
                true => calls::settle(self.ctx)?,
                false => timers::fire(self.ctx)?,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn json(&self, value: &Value<'js>) -> Result<String, Stopped> {
        let intrinsics = with_run(|run| Rc::clone(&run.saved)).restore(self.ctx)?;
        let (problem, advice) =
            match convert::json(value, &intrinsics, RESULT_BYTES_MAX, Mode::Exact) {
                Ok(json) => return Ok(json),
                Err(Unwritable::Thrown(error)) => return Err(error.into()),
                Err(Unwritable::Circular(path)) => (
                    format!("the result cannot be returned: `{path}` is circular"),
                    "return only the parts that you need",
                ),
                Err(Unwritable::Promise(path)) => (
                    format!("the result cannot be returned: `{path}` is a promise"),
                    "await it, or use `await Promise.all([…])` for several",
                ),
                Err(Unwritable::Deep(path)) => (
                    format!("the result cannot be returned: `{path}` is nested too deeply"),
                    "return only the parts that you need",
                ),
                Err(Unwritable::Long) => (
                    "the result is larger than 1 MiB of JSON".to_owned(),
                    "return less: filter, count or slice it, or keep parts of at most 256 KiB with \
                     `await store(\"key\", part)` for a later program",
                ),
            };
        let mut failure = Failure::new("ResultError", problem);
        failure.suggestion = Some(advice.to_owned());
        Err(failure.into())
    }

    /// Fails if calls have not ended.
    fn check_pending(&self) -> Result<(), Stopped> {
        let pending = with_run(|run| std::mem::take(&mut run.pending));
        if pending.is_empty() {
            return Ok(());
        }
        let mut position = None;
        let mut names = Vec::new();
        for pending in pending.iter().take(CALLS_NAMED_MAX) {
            let error = pending.error.clone().restore(self.ctx)?;
            let at = self.position(&error);
            names.push(match &at {
                Some(at) => format!("{} (line {})", pending.tool, at.line),
                None => pending.tool.to_string(),
            });
            position = position.or(at);
        }
        let mut text = format!("not awaited: {}", names.join(", "));
        if pending.len() > CALLS_NAMED_MAX {
            text.push_str(&format!(" and {} more", pending.len() - CALLS_NAMED_MAX));
        }
        let mut failure = Failure::new("NotAwaited", text);
        failure.position = position;
        let advice = "put `await` before each call, or collect the promises and use `await \
                      Promise.all(promises)`";
        failure.suggestion = Some(advice.to_owned());
        Err(failure.into())
    }

    /// Fails if an error was thrown where the program does not see it.
    fn check_rejected(&self) -> Result<(), Stopped> {
        let rejected = with_run(|run| std::mem::take(&mut run.rejected));
        let Some(first) = rejected.first() else { return Ok(()) };
        let mut failure = self.uncaught(&first.reason.clone().restore(self.ctx)?);
        let advice = "this error was thrown in a promise that is never awaited";
        failure.suggestion.get_or_insert_with(|| advice.to_owned());
        Err(failure.into())
    }

    /// Returns the failure of an error that the program did not catch.
    fn uncaught(&self, error: &Value<'js>) -> Failure {
        let failure = self.describe(error);
        // Getters of the program may have thrown.
        let _ = self.ctx.catch();
        failure
    }

    fn describe(&self, error: &Value<'js>) -> Failure {
        let Some(object) = error.as_object().filter(|_| error.is_error()) else {
            return self.describe_value(error);
        };
        let text = |name: &str| -> Option<String> {
            let value: Value<'js> = object.get(name).ok()?;
            value.as_string().and_then(|text| crate::raw::with_text(text, str::to_owned))
        };
        let type_name = text("name").unwrap_or_else(|| "Error".to_owned());
        let message = text("message").unwrap_or_default();
        let mut failure = Failure::new(&type_name, shortened(message));
        failure.position = self.position(object);
        let is_tool = with_run(|run| Rc::clone(&run.saved))
            .restore(self.ctx)
            .is_ok_and(|intrinsics| object.is_instance_of(&intrinsics.tool_error));
        if is_tool {
            failure.tool = text("tool");
            failure.code = text("code");
            failure.suggestion = text("suggestion");
            if let Some(tool) = &failure.tool {
                failure.message = format!("{tool}: {}", failure.message);
            }
        } else if failure.message == "out of memory" {
            let advice = "the objects of a program have 96 MiB; work on smaller parts";
            failure.suggestion = Some(advice.to_owned());
        }
        failure
    }

    /// Returns the failure of a thrown value that is no error.
    fn describe_value(&self, value: &Value<'js>) -> Failure {
        let shown = with_run(|run| Rc::clone(&run.saved))
            .restore(self.ctx)
            .ok()
            .and_then(|saved| convert::json(value, &saved, 1000, Mode::Shown).ok());
        let text = match shown {
            // QuickJS throws null when it has no memory for an error.
            Some(json) if json == "null" => {
                "the program threw null, or memory was exhausted: hold less at once".to_owned()
            }
            Some(json) => format!("the program threw {json}"),
            None => "the program threw a value".to_owned(),
        };
        Failure::new("Uncaught", text)
    }

    /// Returns the position of an error in the program.
    fn position(&self, error: &Object<'js>) -> Option<Position> {
        let stack: Value<'js> = error.get("stack").ok()?;
        let (line, column) = crate::raw::with_text(stack.as_string()?, innermost)??;
        let offset = self.prepared.changed.original(line, column);
        Some(Position::of(self.code, offset))
    }
}

/// Returns the line and column of the program that a stack trace names first.
fn innermost(stack: &str) -> Option<(usize, usize)> {
    stack.lines().find_map(|line| {
        let (_, after) = line.rsplit_once(&format!("{}:", engine::FILE))?;
        let (line, column) = after.trim_end_matches(')').split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?))
    })
}

fn stuck() -> Failure {
    let mut failure =
        Failure::new("Stuck", "the program waits for a promise that nothing will ever settle");
    let advice = "every `new Promise` must call `resolve` or `reject`";
    failure.suggestion = Some(advice.to_owned());
    failure
}

/// Shortens the message of an error that a program made.
fn shortened(mut message: String) -> String {
    const MESSAGE_BYTES_MAX: usize = 4000;
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
    }
    message
}
