//! An agent that works on files. It may read and write freely; before it deletes a file, it asks
//! the user.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::sync::Arc;

use cofferdam_agent::{Agent, ScriptedClient, Session};
use cofferdam_files::{FileAccessOptions, FileAccessTools, MemoryStore, Quota};
use cofferdam_tool::{ToolSource as _, Toolset};

const SCRIPT: &str = r#"
{"calls":[{"tool":"file_access_save_file","arguments":{"file_name":"plan.md","content":"1. tidy up\n"}}]}
{"text":"I will remove it again.","calls":[{"tool":"file_access_delete_file","arguments":{"file_name":"plan.md"}}]}
{"text":"The file stays."}
"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // In memory here. `DirectoryStore::open_ambient` is a directory that calls cannot leave,
    // `BucketStore` a bucket.
    let store = Arc::new(MemoryStore::new(Quota::default()));
    let files = FileAccessTools::new("workspace", store, FileAccessOptions::default())?;
    let instructions = files.instructions().unwrap_or_default().to_owned();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(files))?;

    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let agent = Agent::builder(model).instructions(instructions).tools(toolset).build()?;
    // Turns that belong together. The session records the pending approvals, so that nothing else
    // can be approved.
    let session = Session::new();
    let mut response = agent.run("Write a plan, then tidy up.").session(&session).await?;
    loop {
        let requests: Vec<_> = response.approval_requests().cloned().collect();
        if requests.is_empty() {
            break;
        }
        let mut answers = Vec::new();
        for request in requests {
            let call = &request.function_call;
            println!("the model wants to call {} with {}: no", call.name, call.arguments);
            answers.push(request.refuse(Some("Keep it.".to_owned())));
        }
        response = agent.run(answers).session(&session).await?;
    }
    println!("model: {}", response.text());
    Ok(())
}
