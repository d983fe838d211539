//! The compiler of plugins and the memory pool of the engine.
//!
//! The component is compiled as any plugin is: by a child process with limits, and then asked for
//! its tools in a sandbox. The engine that does this has no cache and accepts any confinement, so
//! that the level is known where it is insufficient.

use std::iter::successors;

use cofferdam_engine::{
    CompileError, Compiler, Confinement, Engine, LoadError, LoadEvent, LoadObserver, PoolSize,
};
use cofferdam_tool::PluginName;
use parking_lot::Mutex;

use super::{CheckArea, CheckOptions, MachineCheck};
use crate::{CacheDirectory, EngineOptions, Operator, Result, Work, text};

/// Name of the component as a plugin.
const PLUGIN: &str = "check";

/// Remembers the confinement of the process that compiled, if it was not full.
#[derive(Default)]
struct ConfinementObserver(Mutex<Option<Confinement>>);

impl LoadObserver for ConfinementObserver {
    fn on_event(&self, event: LoadEvent) {
        if let LoadEvent::Unconfined { level } = event {
            *self.0.lock() = Some(level);
        }
    }
}

/// Starts an engine with the pool of the options, or with the largest smaller one that the system
/// has room for.
pub(super) fn check_pool(options: &EngineOptions) -> (MachineCheck, Option<Engine>) {
    let (area, name) = (CheckArea::Limits, "memory pool");
    let wanted = options.pool.concurrent_calls_max;
    let error = match start(options, wanted) {
        Ok(engine) => {
            let found = format!("room for {} at the same time", calls(wanted));
            return (MachineCheck::ok(area, name, found), Some(engine));
        }
        Err(error) => error,
    };
    let smaller = successors(Some(wanted / 2), |calls| Some(calls / 2)).take_while(|n| *n > 0);
    let fitting = smaller.filter_map(|calls| Some((calls, start(options, calls).ok()?))).next();
    let (room, engine) = fitting.map_or((0, None), |(calls, engine)| (calls, Some(engine)));
    let found = format!("room for {} instead of {wanted}: {error:#}", calls(room));
    let advice = "allow the process more address space, such as with `ulimit -v unlimited`";
    (MachineCheck::problem(area, name, found, advice), engine)
}

fn start(options: &EngineOptions, concurrent_calls_max: u32) -> Result<Engine> {
    let pool = PoolSize { concurrent_calls_max, ..options.pool };
    let cache = CacheDirectory::None;
    EngineOptions { cache, pool, confinement_min: None, ..options.clone() }.start()
}

fn calls(count: u32) -> String {
    text::counted(usize::try_from(count).unwrap_or(usize::MAX), "call")
}

/// Compiles the component of the options.
pub(super) async fn check(
    engine: Option<&Engine>,
    options: &CheckOptions,
    operator: &Operator,
) -> MachineCheck {
    let Some(engine) = engine else {
        return problem("not checked, because the engine does not start", "see the memory pool");
    };
    let plugin = match PluginName::new(PLUGIN) {
        Ok(plugin) => plugin,
        Err(error) => return problem("not checked", error.to_string()),
    };
    let observer = ConfinementObserver::default();
    let label = "compiling a component".to_owned();
    operator.progress(Some(&Work { label, done: 0, total: 1 }));
    let examined = engine.examine(&options.component, &plugin, &observer).await;
    operator.progress(None);
    if let Err(error) = examined {
        return failure(&error);
    }
    if matches!(options.engine.compiler, Some(Compiler::InProcess)) {
        return MachineCheck::note(
            CheckArea::Compiler,
            "compiler",
            "works in this process, without limits and confinement",
            "load only plugins that you have built yourself",
        );
    }
    let level = observer.0.into_inner();
    with_level(level.unwrap_or(Confinement::Full), options.engine.confinement_min)
}

fn with_level(level: Confinement, required: Option<Confinement>) -> MachineCheck {
    let word = word(level);
    let found = format!("works; confinement `{word}`");
    match required {
        Some(required) if level < required => problem(
            format!("confinement `{word}`; `{}` is required", self::word(required)),
            format!(
                "no plugin is compiled: accept the level with `--confinement {word}`, or compile \
                 where the system confines processes"
            ),
        ),
        None if level < Confinement::Full => MachineCheck::note(
            CheckArea::Compiler,
            "compiler",
            found,
            format!(
                "the system does not confine the compiler fully, as in some containers: accept \
                 that with `--confinement {word}`, or refuse it with `--confinement full`"
            ),
        ),
        _ => MachineCheck::ok(CheckArea::Compiler, "compiler", found),
    }
}

fn failure(error: &LoadError) -> MachineCheck {
    match error {
        LoadError::Compile(CompileError::Child(error)) => problem(
            format!("the compiler process cannot be started, or does not answer: {error}"),
            "this program starts itself to compile: its file must be where it was started from, \
             and the system must allow another process",
        ),
        LoadError::Compile(CompileError::Unlimited { reason }) => problem(
            format!("the system refuses the limits of the compiler process: {reason}"),
            "nothing is compiled without them: let processes limit their CPU time and memory",
        ),
        error => problem(
            format!("the component {error}"),
            "give the process more memory and CPU time, or check the component",
        ),
    }
}

fn problem(found: impl Into<String>, advice: impl Into<String>) -> MachineCheck {
    MachineCheck::problem(CheckArea::Compiler, "compiler", found, advice)
}

/// Returns the word for a level on the command line.
fn word(level: Confinement) -> &'static str {
    match level {
        Confinement::Full => "full",
        Confinement::Partial => "partial",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckState;
    use super::*;

    #[test]
    fn a_level_is_a_problem_only_below_the_required_one() {
        use CheckState::{Note, Ok, Problem};
        for (level, required, state) in [
            (Confinement::Full, None, Ok),
            (Confinement::Partial, None, Note),
            (Confinement::None, None, Note),
            (Confinement::Full, Some(Confinement::Full), Ok),
            (Confinement::Partial, Some(Confinement::Full), Problem),
            (Confinement::Partial, Some(Confinement::Partial), Ok),
            (Confinement::None, Some(Confinement::Partial), Problem),
            (Confinement::None, Some(Confinement::None), Ok),
        ] {
            let check = with_level(level, required);
            assert_eq!(check.state, state, "{level:?} {required:?}");
            assert_eq!(check.advice.is_none(), state == Ok, "{check:?}");
        }
    }

    #[test]
    fn a_pool_that_does_not_fit_is_replaced_by_the_largest_that_does() {
        let options = |calls| EngineOptions {
            compiler: Some(Compiler::InProcess),
            pool: PoolSize { concurrent_calls_max: calls, ..PoolSize::default() },
            ..EngineOptions::default()
        };
        let (check, engine) = check_pool(&options(8));
        assert_eq!((check.state, engine.is_some()), (CheckState::Ok, true), "{check:?}");
        assert_eq!(check.found, "room for 8 calls at the same time");
        // 160 TiB, more than the address space of a process.
        let (check, engine) = check_pool(&options(8192));
        assert_eq!((check.state, engine.is_some()), (CheckState::Problem, true), "{check:?}");
        assert!(check.found.contains(" calls instead of 8192: cannot start the "), "{check:?}");
    }
}
