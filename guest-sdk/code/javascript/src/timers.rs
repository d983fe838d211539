//! `setTimeout`: an order of functions, without waiting. The clock goes forward by what a timer
//! would have waited, so that a loop until a deadline ends.

use rquickjs::function::Opt;
use rquickjs::prelude::Rest;
use rquickjs::{Ctx, Function, Object, Persistent, Value};

use crate::engine::hidden;
use crate::run::with_run;

/// Function that runs when no call is left to wait for.
pub(crate) struct Timer {
    id: u32,
    /// Milliseconds of the clock at which it runs.
    due: f64,
    function: Persistent<Function<'static>>,
    arguments: Vec<Persistent<Value<'static>>>,
}

/// Timers of a run.
#[derive(Default)]
pub(crate) struct Timers {
    waiting: Vec<Timer>,
    last_id: u32,
}

/// Installs the functions.
pub(crate) fn install(globals: &Object<'_>) -> rquickjs::Result<()> {
    let ctx = globals.ctx();
    hidden(globals, "setTimeout", Function::new(ctx.clone(), set)?.with_name("setTimeout")?)?;
    hidden(globals, "clearTimeout", Function::new(ctx.clone(), clear)?.with_name("clearTimeout")?)?;
    let queue = Function::new(ctx.clone(), |function: Function<'_>| function.defer(()))?;
    hidden(globals, "queueMicrotask", queue.with_name("queueMicrotask")?)
}

fn set<'js>(
    ctx: Ctx<'js>,
    function: Function<'js>,
    delay: Opt<f64>,
    arguments: Rest<Value<'js>>,
) -> u32 {
    let delay = delay.0.filter(|delay| *delay >= 0.0).unwrap_or_default();
    let function = Persistent::save(&ctx, function);
    let arguments = arguments.0.into_iter().map(|value| Persistent::save(&ctx, value)).collect();
    with_run(|run| {
        let timers = &mut run.timers;
        timers.last_id += 1;
        let id = timers.last_id;
        timers.waiting.push(Timer { id, due: run.now + delay, function, arguments });
        id
    })
}

fn clear(id: Opt<Value<'_>>) {
    let id = id.0.and_then(|id| id.as_int());
    let cleared = with_run(|run| {
        let waiting = &mut run.timers.waiting;
        let at = waiting.iter().position(|timer| i64::from(timer.id) == id.map_or(-1, i64::from));
        at.map(|at| waiting.remove(at))
    });
    drop(cleared);
}

/// Runs the next timer. Returns false if there is none.
pub(crate) fn fire(ctx: &Ctx<'_>) -> rquickjs::Result<bool> {
    let next = with_run(|run| {
        let waiting = &mut run.timers.waiting;
        // The first of those that are due first.
        let next = waiting.iter().enumerate().min_by(|(_, a), (_, b)| a.due.total_cmp(&b.due));
        let timer = next.map(|(at, _)| at).map(|at| waiting.remove(at))?;
        run.now = run.now.max(timer.due);
        Some(timer)
    });
    let Some(timer) = next else { return Ok(false) };
    let function = timer.function.restore(ctx)?;
    let arguments: rquickjs::Result<Vec<_>> =
        timer.arguments.into_iter().map(|value| value.restore(ctx)).collect();
    function.call::<_, ()>((Rest(arguments?),))?;
    Ok(true)
}
