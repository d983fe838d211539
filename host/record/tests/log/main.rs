//! A log as a whole: what is recorded is found again, also after crashes and beside others.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which are not test functions themselves"
)]

mod crashes;
mod damage;
mod directories;
mod filters;
mod limits;
mod payloads;
mod round_trip;
mod secrets;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use cofferdam_record::{PayloadMode, RecordOptions, Recorder};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{CallContext, Functions, Toolset};
use serde_json::json;

/// A directory for a log, which does not exist yet.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("log")
    }

    fn options(&self, payloads: PayloadMode) -> RecordOptions {
        RecordOptions { payloads, ..RecordOptions::new(self.path()) }
    }

    fn recorder(&self) -> Arc<Recorder> {
        Arc::new(Recorder::open(self.options(PayloadMode::Digests)).unwrap())
    }
}

/// Tools that end in each way.
fn toolset(recorder: &Arc<Recorder>) -> Toolset {
    let tool = |name| Declaration::new(name, "A tool.", r#"{"type":"object"}"#);
    let open = |name| {
        Declaration::new(name, "A tool.", r#"{"type":"object","additionalProperties":true}"#)
    };
    let functions = Functions::new("samples")
        .with(open("echo"), async |arguments, _| Ok(arguments.into_value()))
        .unwrap()
        .with(tool("fail"), async |_, _| Err(FunctionEnd::failure("It does not work.")))
        .unwrap()
        .with(tool("break"), async |_, _| Err("x".parse::<u8>().unwrap_err().into()))
        .unwrap()
        .with(tool("sleep"), async |_, _| {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(json!("done"))
        })
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.set_sink(Arc::clone(recorder) as Arc<dyn CallSink>);
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

async fn call(toolset: &Toolset, tool: &str, arguments: &str, session: &str) {
    let context =
        CallContext { session: Some(session.to_owned()), ..CallContext::new("call-of-caller") };
    let _ = toolset.call(tool, Some(arguments.as_bytes()), &context).await;
}
