//! Rows of `answers.jsonl`: structured answers and their repair.

use cofferdam_agent::{
    Agent, ChatOptions, FinishReason, Reply, ResponseFormat, Role, RunError, ScriptedClient,
};
use serde_json::{Value, json};

use super::agent::{block_on, finished};
use super::{Row, expect_same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    let outcome = match row.op.as_str() {
        "answer" => block_on(answered(row))?,
        "format" => format(row)?,
        other => return Err(format!("unknown operation `{other}`")),
    };
    let expected = row.expect.as_object().ok_or("`expect` is not an object")?;
    expected.iter().try_for_each(|(key, expected)| {
        let got = outcome.get(key).ok_or_else(|| format!("unknown key `{key}` in `expect`"))?;
        expect_same(key, expected, got)
    })
}

/// One run with a response format: its answer or error, and the messages of the repair.
async fn answered(row: &Row) -> Result<Value, String> {
    let schema = row.required("schema")?.to_string();
    let format = ResponseFormat::new("answer", &schema).map_err(|error| error.to_string())?;
    let replies = row.required("replies")?.as_array().ok_or("`replies` is not a list")?;
    let replies = replies.iter().map(reply).collect::<Result<Vec<_>, _>>()?;
    let client = ScriptedClient::new(replies).recording();
    let agent = Agent::builder(client.clone()).build().map_err(|error| error.to_string())?;
    let options = ChatOptions { response_format: Some(format), ..ChatOptions::default() };
    let ended = finished(agent.run("go").options(options), row.flag("stream")).await?;
    let requests = client.requests();
    let repairs: Vec<_> = requests.last().map_or_else(Vec::new, |request| {
        let messages = request.messages.iter().skip(1);
        messages
            .filter(|message| message.role == Role::User)
            .map(|message| message.text())
            .collect()
    });
    let (answer, error) = match ended {
        Ok(response) => (response.answer, None),
        Err(RunError::Answer(error)) => (
            None,
            Some(json!({
                "message": error.to_string(), "text": error.text, "problems": error.problems,
            })),
        ),
        Err(error) => return Err(format!("the run raises {error}")),
    };
    Ok(json!({"answer": answer, "error": error, "repairs": repairs, "requests": requests.len()}))
}

fn reply(row: &Value) -> Result<Reply, String> {
    if let Some(text) = row.as_str() {
        return Ok(Reply::text(text));
    }
    let text = row["text"].as_str().ok_or("a reply without `text`")?;
    let finish = match row["finish"].as_str() {
        Some("length") => FinishReason::Length,
        Some("refusal") => FinishReason::Refusal,
        Some("content_filter") => FinishReason::ContentFilter,
        other => return Err(format!("unknown finish reason {other:?}")),
    };
    Ok(Reply { finish: Some(finish), ..Reply::text(text) })
}

/// A response format that is refused before a request.
fn format(row: &Row) -> Result<Value, String> {
    let refused = ResponseFormat::new(row.text("name")?, &row.required("schema")?.to_string());
    Ok(json!({"is_accepted": refused.is_ok()}))
}
