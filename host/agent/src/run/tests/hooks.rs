//! Tests of the iteration hook.

use std::fmt;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{Log, agent, calling};
use crate::{ApprovalMode, Approvals, IterationContext, LoopSettings, RunError};

fn hooked(hook: impl Fn(&mut IterationContext<'_>) + Send + Sync + 'static) -> LoopSettings {
    let hook = move |context: &mut IterationContext<'_>| {
        hook(context);
        Ok(())
    };
    LoopSettings { iteration_completed: Some(Arc::new(hook)), ..LoopSettings::default() }
}

#[tokio::test]
async fn the_hook_has_the_token_of_the_run() {
    let client = calling(&[&[("echo", "{}")], &[("echo", "{}")]]);
    let settings = hooked(|context| {
        assert!(!context.cancellation.is_cancelled());
        context.cancellation.cancel();
    });
    let agent = agent(&client, &Log::default()).settings(settings).build().unwrap();
    let cancellation = CancellationToken::new();
    let ended = agent.run("go").cancellation(cancellation.clone()).await;
    assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
    assert!(cancellation.is_cancelled());
    assert_eq!(client.requests().len(), 1);
}

/// Keeps the events of a thread.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

#[tokio::test]
async fn the_end_by_a_hook_is_traced() {
    for ends in [false, true] {
        let client = calling(&[&[("echo", "{}")]]);
        let settings = hooked(move |context| context.terminate = ends);
        let agent = agent(&client, &Log::default()).settings(settings).build().unwrap();
        let events = Events::default();
        let guard = tracing::subscriber::set_default(events.clone());
        agent.run("go").await.unwrap();
        drop(guard);
        let events = events.0.lock().unwrap().clone();
        let is_traced = events.iter().any(|line| {
            line.contains("the iteration hook ended the run") && line.contains("iteration=0")
        });
        assert_eq!(is_traced, ends, "{events:?}");
    }
}

#[test]
fn a_misspelled_tool_of_approvals_is_logged() {
    let events = Events::default();
    let guard = tracing::subscriber::set_default(events.clone());
    let approvals = Approvals::default().with("ech", ApprovalMode::Always);
    agent(&calling(&[]), &Log::default()).approvals(approvals).build().unwrap();
    drop(guard);
    let events = events.0.lock().unwrap().clone();
    assert!(events.iter().any(|line| line.contains("did you mean `echo`?")), "{events:?}");
}
