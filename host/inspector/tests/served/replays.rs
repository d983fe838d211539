//! Calls that can run again, and a replayer that runs none.

use std::sync::{Arc, Mutex};

use cofferdam_inspector::{CallReplayer, ReplayComponent, ReplayFuture, ReplayedCall};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::recording::CallRecording;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{
    CallContext, Completion, Functions, PluginName, ToolCall, ToolDefinition, ToolSource, Toolset,
};
use serde_json::{Value, json};

use super::Served;

/// Notes what it is asked for.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<String>>);

impl CallReplayer for Notes {
    fn replay(&self, recording: Arc<CallRecording>, component: ReplayComponent) -> ReplayFuture {
        let component = match component {
            ReplayComponent::Recorded(of) => of.plugin.digest.clone(),
            ReplayComponent::Configured => "configured".to_owned(),
        };
        let is_same = component == recording.plugin.digest;
        self.0.lock().unwrap().push(format!("{} in {component}", recording.tool));
        Box::pin(async move {
            if component == "configured" {
                return Err("the file <b>\u{202e}</b> is missing".to_owned());
            }
            let difference = "result: <i>1</i> \u{1b}[2J → 2".to_owned();
            Ok(ReplayedCall {
                differences: if is_same { Vec::new() } else { vec![difference] },
                gaps: vec!["a clock".to_owned()],
                is_same_component: is_same,
                recorded_cpu_us: 1000,
                cpu_us: 2000,
            })
        })
    }

    fn has_configuration(&self) -> bool {
        true
    }
}

/// Functions as if they were those of a plugin, whose calls can run again.
struct Recorded {
    functions: Functions,
    identity: PluginIdentity,
    recording: Arc<CallRecording>,
}

#[async_trait::async_trait]
impl ToolSource for Recorded {
    fn name(&self) -> &str {
        "samples"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        self.functions.definitions()
    }

    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        Some(&self.identity)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let mut completion = self.functions.invoke(call, context).await;
        completion.record.recording = Some(Arc::clone(&self.recording));
        completion
    }
}

/// Records a call of each version of a plugin. The log keeps no component.
pub(crate) async fn record(served: &Served, digests: &[&str]) {
    let recorder = served.recorder();
    for digest in digests {
        let recording: CallRecording = serde_json::from_value(json!({
            "version": 1, "tool": "echo", "arguments": {}, "outcome": {"ok": []},
            "plugin": {"name": "samples", "digest": digest, "limits": {}},
        }))
        .unwrap();
        let tool = Declaration::new("echo", "A tool.", r#"{"type":"object"}"#);
        let functions = Functions::new("samples").with(tool, async |_, _| Ok(Value::Null)).unwrap();
        let identity =
            PluginIdentity { name: PluginName::new("samples").unwrap(), digest: (*digest).into() };
        let mut toolset = Toolset::new();
        toolset.set_sink(Arc::clone(&recorder) as Arc<dyn CallSink>);
        let recording = Arc::new(recording);
        toolset.add(Arc::new(Recorded { functions, identity, recording })).unwrap();
        toolset.call("echo", Some(b"{}"), &CallContext::new("1")).await.unwrap();
    }
    recorder.close();
}
