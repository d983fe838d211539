//! Any JSON as the answers of a remote MCP server: its lists and its results of calls are accepted
//! or refused.

use std::sync::Arc;

use cofferdam_mcp::client::testing::Scripted;
use cofferdam_mcp::client::{
    Calls, Questions, Resend, SelectionMode, ServerListing, TaskOptions, TaskSupport, into_output,
};
use cofferdam_tool::CallContext;
use serde_json::{Map, Value, json};

/// Maximum number of times that a call is polled. The script answers at once, so a call that needs
/// more has used up its answers.
const TURNS_MAX: usize = 64;

/// Parses the bytes as a list of answers, to requests for lists and to calls of tools.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(answers) = serde_json::from_slice::<Vec<Value>>(bytes) else { return };
    super::block_on(async {
        let remote = Scripted::answering(answers.clone());
        if let Some(Ok(listing)) = bounded(ServerListing::fetch(&remote, true, true)).await {
            for tool in &listing.tools {
                let again = cofferdam_mcp::client::input_schema(Some(&tool.input_schema));
                assert!(again.is_object(), "the schema of a tool is an object");
            }
        }
        for support in [TaskSupport::Required, TaskSupport::Other] {
            let calls = calls(answers.clone());
            let parameters = Map::from_iter([("name".to_owned(), json!("t"))]);
            let context = CallContext::new("fuzz");
            match bounded(calls.call("t", support, parameters, &context)).await {
                Some(Ok(items)) => drop(into_output(items).text().to_owned()),
                Some(Err(error)) => drop(error.into_outcome()),
                None => {}
            }
        }
    });
}

fn calls(answers: Vec<Value>) -> Calls {
    Calls {
        remote: Arc::new(Scripted::answering(answers)),
        tasks: TaskOptions::default(),
        selection: SelectionMode::default(),
        questions: Arc::new(Questions::default()),
        loads_tools: true,
        resend: Resend::Always,
        wait: None,
    }
}

async fn bounded<F: Future>(future: F) -> Option<F::Output> {
    let turns = async {
        for _ in 0..TURNS_MAX {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        done = future => Some(done),
        () = turns => None,
    }
}
