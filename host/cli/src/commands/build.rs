//! `cofferdam build`: builds a component from sources, checks it and times a call.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use cofferdam_engine::Engine;
use cofferdam_tool::declaration::{Declaration, Review, review};
use serde_json::{Value, json};

use crate::args::{BuildArgs, Global};
use crate::exit::Exit;
use crate::rebuild::{self, BuiltComponent, Recipe};
use crate::{host, print};
use cofferdam::cases::{self, Cases, Runner};
use cofferdam::compose::{self, ComponentReport};
use cofferdam::watch::Sources;

/// Maximum number and total duration of warm calls that are timed.
const WARM_CALLS_MAX: usize = 50;
const WARM_TIME_MAX: Duration = Duration::from_millis(500);

pub(crate) async fn run(global: &Global, args: BuildArgs) -> anyhow::Result<Exit> {
    let engine = host::engine(global)?;
    let mut sources = args
        .watch
        .then(|| Sources::watch(&args.directory, cofferdam_author::is_source, host::operator()))
        .transpose()?;
    loop {
        let result = build(&engine, &args).await;
        let Some(sources) = &mut sources else { return result };
        if let Err(error) = result {
            print::error(&error);
        }
        print::note("waiting for changes, Ctrl-C ends");
        if !sources.changed().await {
            return Ok(Exit::Ok);
        }
    }
}

async fn build(engine: &Engine, args: &BuildArgs) -> anyhow::Result<Exit> {
    let recipe = Recipe {
        directory: args.directory.clone(),
        output: args.output.clone(),
        keep_names: args.keep_names,
        is_verbose: args.verbose,
    };
    // Blocking is fine here: nothing else runs meanwhile, and Ctrl-C reaches the toolchain as well.
    let built = rebuild::build(&recipe)?;
    let report = BuildReport::of(engine, &built).await?;
    if args.json {
        print::result(&report.json().to_string())?;
    } else {
        print::result(&report.text())?;
    }
    Ok(if report.review.refusals.is_empty() { Exit::Ok } else { Exit::Plugin })
}

struct BuildReport {
    component: String,
    bytes: u64,
    digest: String,
    tools: Vec<String>,
    review: Review,
    times: Option<Times>,
}

/// Durations of a call.
struct Times {
    tool: String,
    /// Time to compile and load the component and to make the first call. `None` if the component
    /// had been compiled before.
    cold: Option<Duration>,
    /// Median of warm calls, each with a fresh instance.
    warm: Duration,
}

impl BuildReport {
    async fn of(engine: &Engine, built: &BuiltComponent) -> anyhow::Result<Self> {
        let started = Instant::now();
        let ComponentReport { info, declarations, was_compiled } =
            compose::examine(engine, &built.component, &host::operator()).await?;
        let loading = started.elapsed();
        let times = times(engine, built, &declarations).await?.map(|(tool, first, warm)| Times {
            tool,
            cold: was_compiled.then_some(loading + first),
            warm,
        });
        Ok(Self {
            component: shown(&built.component),
            bytes: info.component_bytes,
            digest: info.identity.digest.to_string(),
            tools: declarations.iter().map(|tool| tool.name.clone()).collect(),
            review: review(&declarations),
            times,
        })
    }

    fn text(&self) -> String {
        let mut text =
            format!("{}  {}  {}\n", self.component, print::bytes(self.bytes), self.digest);
        // Writing to a string cannot fail.
        let _ =
            write!(text, "{}: {}", print::counted(self.tools.len(), "tool"), self.tools.join(", "));
        for refusal in &self.review.refusals {
            let _ = write!(text, "\nrefused: {refusal}");
        }
        let advice = self.review.advice.len();
        if advice > 0 {
            let what = if advice == 1 { "a remark" } else { "remarks" };
            let _ = write!(
                text,
                "\n`cofferdam check {}` has {what} for you ({advice})",
                self.component
            );
        }
        match &self.times {
            Some(Times { tool, cold, warm }) => {
                let cold =
                    cold.map_or_else(String::new, |cold| format!("{} cold, ", print::time(cold)));
                let _ = write!(text, "\n{tool}: {cold}{} warm", print::time(*warm));
            }
            None => {
                text.push_str("\nno call was timed: no case in cases.jsonl has returned a value")
            }
        }
        text
    }

    fn json(&self) -> Value {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        json!({
            "component": self.component,
            "bytes": self.bytes,
            "digest": self.digest,
            "tools": self.tools,
            "refusals": self.review.refusals.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "advice": self.review.advice.len(),
            "timed_tool": self.times.as_ref().map(|times| &times.tool),
            "cold_us": self.times.as_ref().and_then(|times| times.cold).map(micros),
            "warm_us": self.times.as_ref().map(|times| micros(times.warm)),
        })
    }
}

/// Times the first case if it returns a value. Returns its tool, the time of the first call and the
/// median of the following ones.
async fn times(
    engine: &Engine,
    built: &BuiltComponent,
    declarations: &[Declaration],
) -> anyhow::Result<Option<(String, Duration, Duration)>> {
    let path = built.project.directory().join(cases::FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let language = built.project.language().id();
    let mut cases = Cases::read(&path)?;
    cases.retain(Some(language), None);
    let Some(case) = cases.for_timing() else { return Ok(None) };
    let runner = Runner {
        replays: false,
        engine,
        component: &built.component,
        directory: &cases.directory,
        language: Some(language),
        declarations,
    };
    let prepared = runner.prepare(case).await?;
    let started = Instant::now();
    if !prepared.succeeds(case).await {
        let advice = format!(
            "the first case, `{}`, does not return a value; `cofferdam test` says more",
            case.title()
        );
        print::note(&advice);
        return Ok(None);
    }
    let first = started.elapsed();
    let (mut warm, began) = (Vec::new(), Instant::now());
    while warm.is_empty() || (warm.len() < WARM_CALLS_MAX && began.elapsed() < WARM_TIME_MAX) {
        let started = Instant::now();
        prepared.succeeds(case).await;
        warm.push(started.elapsed());
    }
    warm.sort_unstable();
    let median = warm.get(warm.len() / 2).copied().unwrap_or_default();
    Ok(Some((case.tool.clone(), first, median)))
}

/// Returns a path relative to the working directory if possible.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok().and_then(|here| here.canonicalize().ok());
    let relative = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
    relative.unwrap_or(path).display().to_string()
}
