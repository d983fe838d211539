//! Receiver of every call of a toolset: a log, or the embedding program.
//!
//! A toolset without a sink does no work for this. A call that has begun always ends, also if its
//! future is dropped: the sink then receives a canceled call. Calls that a plugin makes of other
//! tools take the same path, so the sink receives them as well.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::record::PluginIdentity;
use crate::{CallContext, Completion, Outcome, RefusedCall, ToolDefinition, ToolSource};

/// Receives the calls of a toolset. Called from within the calls, so it must not block.
pub trait CallSink: Send + Sync {
    /// Receives a call that is about to run, with its decoded arguments. Returns a number for it,
    /// which [`end`](Self::end) gets and the call's record has as its `number`, or `None` if the
    /// sink does not keep the call.
    fn begin(&self, call: &ObservedCall<'_>, arguments: &Map<String, Value>) -> Option<u64>;

    /// Receives the outcome of a call that has begun, also of one without a number.
    fn end(&self, number: Option<u64>, call: &ObservedCall<'_>, completion: &Completion);

    /// Receives a call that did not start, by the name that the caller gave.
    fn refused(&self, name: &str, refused: &RefusedCall, context: &CallContext);

    /// Receives the decision of a user about a call that needs approval, before the call begins.
    fn decided(&self, decision: &ApprovalDecision<'_>) {
        let _ = decision;
    }
}

/// Decision of a user about a call that needs approval.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalDecision<'d> {
    /// Name of the tool.
    pub tool: &'d str,
    /// Id that the caller gave to the call; empty if it has none yet.
    pub call_id: &'d str,
    /// User or client that decided.
    pub by: &'d str,
    /// True if the call may run.
    pub is_allowed: bool,
    /// Time that the decision took.
    pub waited: Duration,
}

/// A call, as a sink sees it.
#[derive(Clone, Copy)]
pub struct ObservedCall<'c> {
    /// Context that the caller provided: call id, session, outer call.
    pub context: &'c CallContext,
    /// Definition of the tool.
    pub tool: &'c ToolDefinition,
    /// Source of the tool.
    pub source: &'c dyn ToolSource,
    /// Time at which the arguments were decoded, and the call began.
    pub began: Instant,
}

impl ObservedCall<'_> {
    /// Returns the identity of the plugin, if the tool is a plugin's.
    #[must_use]
    pub fn plugin(&self) -> Option<&PluginIdentity> {
        self.source.plugin_identity()
    }
}

/// A call that has begun. Dropping it before [`end`](Self::end) reports it as canceled.
pub(crate) struct SinkGuard<'c> {
    sink: Option<&'c dyn CallSink>,
    call: ObservedCall<'c>,
    number: Option<u64>,
}

impl<'c> SinkGuard<'c> {
    /// Reports the start of a call.
    pub(crate) fn begin(
        sink: Option<&'c dyn CallSink>,
        call: ObservedCall<'c>,
        arguments: &Map<String, Value>,
    ) -> Self {
        let number = sink.and_then(|sink| sink.begin(&call, arguments));
        Self { sink, call, number }
    }

    /// Reports the outcome of the call.
    pub(crate) fn end(mut self, completion: &mut Completion) {
        if let Some(sink) = self.sink.take() {
            completion.record.number = self.number;
            sink.end(self.number, &self.call, completion);
        }
    }
}

impl Drop for SinkGuard<'_> {
    fn drop(&mut self) {
        let Some(sink) = self.sink.take() else { return };
        let mut completion = Completion::ended(Outcome::Cancelled, self.call.context);
        completion.record.number = self.number;
        completion.record.tool = Some(self.call.tool.name.clone());
        completion.record.plugin = self.call.plugin().cloned();
        sink.end(self.number, &self.call, &completion);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::declaration::Declaration;
    use crate::{Functions, Toolset};

    /// Lines about calls, and the number that each call gets.
    struct Lines(Mutex<Vec<String>>, Option<u64>);

    impl Lines {
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }

        fn push(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }
    }

    impl CallSink for Lines {
        fn begin(&self, call: &ObservedCall<'_>, arguments: &Map<String, Value>) -> Option<u64> {
            let arguments = Value::Object(arguments.clone());
            let (id, tool, source) = (&call.context.call_id, &call.tool.name, call.source.name());
            self.push(format!("begin {id} {tool} {source} {arguments}"));
            self.1
        }

        fn end(&self, number: Option<u64>, call: &ObservedCall<'_>, completion: &Completion) {
            let CallContext { call_id, .. } = call.context;
            let number = number.map_or("-".to_owned(), |number| number.to_string());
            self.push(format!("end {number} {call_id} {}", completion.outcome.word()));
        }

        fn refused(&self, name: &str, refused: &RefusedCall, context: &CallContext) {
            self.push(format!("refused {} {name}: {refused}", context.call_id));
        }
    }

    fn lines_and_toolset(number: Option<u64>) -> (Arc<Lines>, Toolset) {
        let lines = Arc::new(Lines(Mutex::default(), number));
        let toolset = toolset(&lines);
        (lines, toolset)
    }

    fn toolset(lines: &Arc<Lines>) -> Toolset {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
        let double = Declaration::new("double", "Twice a number.", schema);
        let sleep = Declaration::new("sleep", "Sleeps.", r#"{"type":"object"}"#);
        let functions = Functions::new("math")
            .with(double, async |arguments, _| {
                Ok(json!(2 * arguments.value()["a"].as_i64().unwrap()))
            })
            .unwrap()
            .with(sleep, async |_, _| {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(json!(null))
            })
            .unwrap();
        let mut toolset = Toolset::new();
        toolset.set_sink(Arc::clone(lines) as Arc<dyn CallSink>);
        toolset.add(Arc::new(functions)).unwrap();
        toolset
    }

    #[tokio::test]
    async fn a_sink_receives_each_call_once() {
        let (lines, toolset) = lines_and_toolset(Some(7));
        let context = CallContext::new("c1");
        let completion = toolset.call("double", Some(br#"{"a":"2"}"#), &context).await.unwrap();
        assert_eq!(completion.record.number, Some(7));
        assert_eq!(lines.take(), ["begin c1 double math {\"a\":2}", "end 7 c1 ok"]);

        let _ = toolset.call("triple", None, &context).await;
        assert_eq!(lines.take(), ["refused c1 triple: there is no tool called 'triple'"]);
        assert!(toolset.call("double", None, &context).await.is_err());
        let refused = lines.take();
        assert!(refused.len() == 1 && refused[0].starts_with("refused c1 double: "));
    }

    #[tokio::test]
    async fn a_call_that_the_sink_does_not_keep_has_no_number() {
        let (lines, toolset) = lines_and_toolset(None);
        let context = CallContext::new("c1");
        let completion = toolset.call("double", Some(br#"{"a":2}"#), &context).await.unwrap();
        assert_eq!(completion.record.number, None);
        assert_eq!(lines.take(), ["begin c1 double math {\"a\":2}", "end - c1 ok"]);
    }

    #[tokio::test]
    async fn a_dropped_call_ends_as_canceled() {
        let (lines, toolset) = lines_and_toolset(Some(7));
        let context = CallContext::new("c2");
        let call = toolset.call("sleep", None, &context);
        assert!(tokio::time::timeout(Duration::from_millis(5), call).await.is_err());
        assert_eq!(lines.take(), ["begin c2 sleep math {}", "end 7 c2 cancelled"]);
    }

    #[tokio::test]
    async fn an_inner_call_that_is_not_admitted_is_a_failure() {
        struct Gate;
        impl crate::invoke::InnerCalls for Gate {
            fn admit(
                &self,
                _: &crate::invoke::InnerCall<'_>,
            ) -> Result<(), Box<crate::ToolFailure>> {
                Err(Box::new(crate::ToolFailure::new("no")))
            }
            fn ended(&self, _: &crate::invoke::InnerCall<'_>, _: &crate::CallRecord) {}
        }
        let (lines, toolset) = lines_and_toolset(Some(7));
        let outer =
            crate::invoke::OuterCall { call_id: "c3".to_owned(), depth: 1, files: Arc::new(()) };
        let context = CallContext {
            outer: Some(outer),
            inner_calls: Some(Arc::new(Gate)),
            ..CallContext::new("c3.1")
        };
        let _ = toolset.call("double", Some(br#"{"a":2}"#), &context).await.unwrap();
        assert_eq!(lines.take(), ["begin c3.1 double math {\"a\":2}", "end 7 c3.1 failure"]);
    }
}
