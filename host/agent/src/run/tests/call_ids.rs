//! Tests of models that reuse a call id.

use super::*;
use crate::{ApprovalMode, Approvals, Session};

#[tokio::test]
async fn a_call_that_was_given_up_does_not_get_the_result_of_a_later_one() {
    let asks = || {
        let call = MessageContent::call("call_1", "echo", r#"{"text":"a"}"#);
        Reply { messages: vec![Message::new(Role::Assistant, vec![call])], ..Reply::default() }
    };
    let client =
        ScriptedClient::new([asks(), asks(), Reply::text("done"), Reply::text("end")]).recording();
    let (log, session) = (Log::default(), Session::new());
    let approvals = Approvals::by_default(ApprovalMode::Always);
    let agent = agent(&client, &log).approvals(approvals).build().unwrap();
    agent.run("do a").session(&session).await.unwrap();
    // The request is not answered, and the next turn abandons it.
    let response = agent.run("do a again").session(&session).await.unwrap();
    let request = response.approval_requests().next().unwrap().clone();
    agent.run(vec![request.approve()]).session(&session).await.unwrap();
    agent.run("thanks").session(&session).await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["echo(a)"]);
    let requests = client.requests();
    let shown = |request: usize| {
        let line = |message: &Arc<Message>| {
            let calls = message.calls().map(|call| format!("call {}", call.call_id));
            let results = message.results().map(|result| format!("result {}", result.call_id));
            format!("{}{}", message.text(), calls.chain(results).collect::<String>())
        };
        requests[request].messages.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(shown(2), ["do a", "do a again", "call call_1", "result call_1"]);
    assert_eq!(shown(3), ["do a", "do a again", "call call_1", "result call_1", "done", "thanks"]);
}
