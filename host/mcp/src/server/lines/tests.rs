use std::task::Poll;

use futures_util::FutureExt as _;
use rmcp::model::{EmptyResult, ErrorData, RequestId, ServerResult};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::output::WAITING_BYTES_MAX;
use super::*;

/// Creates the transport, the client's input and the client's output, with an output buffer of
/// `bytes`.
fn lines(bytes: usize) -> (LineTransport<DuplexStream, DuplexStream>, DuplexStream, DuplexStream) {
    let (client_in, input) = tokio::io::duplex(1 << 20);
    let (output, client_out) = tokio::io::duplex(bytes);
    (LineTransport::new(input, output, Default::default()), client_in, client_out)
}

fn call(id: i64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}}).to_string()
        + "\n"
}

fn answer(id: i64) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), RequestId::Number(id))
}

fn id(message: Option<ClientJsonRpcMessage>) -> Option<RequestId> {
    message?.into_request().map(|(_, id)| id)
}

async fn written(client: &mut DuplexStream) -> Vec<Value> {
    let mut bytes = vec![0; 1 << 16];
    let read = client.read(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes[..read].to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn nothing_but_a_request_begins() {
    let (mut lines, mut client, _out) = lines(1 << 16);
    let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":5,"result":{}}

{"jsonrpc":"2.0","id":6,"method":"ping"}
"#;
    client.write_all(text.as_bytes()).await.unwrap();
    assert_eq!(id(lines.receive().await), Some(RequestId::Number(6)));
}

#[tokio::test]
async fn a_line_that_is_interrupted_goes_on() {
    let (mut lines, mut client, _out) = lines(1 << 16);
    for byte in call(1).as_bytes() {
        assert!(futures_util::poll!(std::pin::pin!(lines.receive())).is_pending());
        client.write_all(&[*byte]).await.unwrap();
    }
    assert_eq!(id(lines.receive().await), Some(RequestId::Number(1)));
    client.write_all(b"{\"jsonrpc\":").await.unwrap();
    drop(client);
    assert!(lines.receive().await.is_none(), "what has no end is not a message");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_passed_over() {
    let (mut lines, mut client, _out) = lines(1 << 16);
    let feed = async {
        let part = vec![b' '; 1 << 20];
        for _ in 0..LINE_BYTES_MAX / part.len() + 1 {
            client.write_all(&part).await.unwrap();
        }
        client.write_all(call(1).as_bytes()).await.unwrap();
        client.write_all(call(2).as_bytes()).await.unwrap();
        client
    };
    let (message, _client) = tokio::join!(lines.receive(), feed);
    assert_eq!(id(message), Some(RequestId::Number(2)));
    assert!(lines.line.capacity() <= 2 * LINE_BYTES_MAX);
}

#[tokio::test]
async fn what_is_json_and_no_message_is_answered_and_what_is_no_json_is_not() {
    let (mut lines, mut client, mut out) = lines(1 << 16);
    client.write_all(b"nonsense\n{\"jsonrpc\":\"2.0\",\"id\":[]}\n").await.unwrap();
    client.write_all(call(1).as_bytes()).await.unwrap();
    assert_eq!(id(lines.receive().await), Some(RequestId::Number(1)));
    let answers = written(&mut out).await;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["error"]["code"], -32600);
}

/// Requests that are JSON, and that the SDK cannot read.
#[tokio::test]
async fn requests_that_cannot_be_read_are_answered() {
    let (mut lines, mut client, mut out) = lines(1 << 16);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let params = [r#"{"name":"\ud800"}"#, r#"{"name":1e999}"#, &deep];
    for (id, params) in params.iter().enumerate() {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n"
        );
        client.write_all(line.as_bytes()).await.unwrap();
    }
    client.write_all(call(9).as_bytes()).await.unwrap();
    assert_eq!(id(lines.receive().await), Some(RequestId::Number(9)));
    lines.flush().await.unwrap();
    let answers = written(&mut out).await;
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(0), json!(1), json!(2)], "{answers:?}");
    assert!(answers.iter().all(|answer| answer["error"]["code"].is_number()), "{answers:?}");
}

#[tokio::test]
async fn answers_that_are_ready_together_are_written_together_and_a_single_one_at_once() {
    let (mut lines, mut client, mut out) = lines(1 << 16);
    client.write_all([call(1), call(2), call(3)].concat().as_bytes()).await.unwrap();
    for _ in 0..3 {
        lines.receive().await.unwrap();
    }
    let sent = [lines.send(answer(1)), lines.send(answer(2))];
    assert!(
        futures_util::poll!(std::pin::pin!(out.read_u8())).is_pending(),
        "one call is under way"
    );
    for sent in sent {
        sent.await.unwrap();
    }
    assert_eq!(written(&mut out).await.len(), 2);
    let last = lines.send(answer(3));
    assert_eq!(written(&mut out).await[0]["id"], 3, "without a future being polled");
    last.await.unwrap();
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_every_line_whole() {
    let (mut lines, mut client, mut out) = lines(16);
    client.write_all([call(1), call(2)].concat().as_bytes()).await.unwrap();
    for _ in 0..2 {
        lines.receive().await.unwrap();
    }
    let sent = [lines.send(answer(1)), lines.send(answer(2))];
    let writing = async {
        // The first one is dropped in the middle of a line.
        let [first, second] = sent;
        assert!(futures_util::poll!(Box::pin(first)).is_pending());
        second.await.unwrap();
        lines.close().await.unwrap();
    };
    let reading = async {
        let mut text = String::new();
        out.read_to_string(&mut text).await.unwrap();
        text
    };
    let ((), text) = tokio::join!(writing, reading);
    let ids: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [json!(1), json!(2)]);
    let refused = lines
        .send(ServerJsonRpcMessage::error(ErrorData::internal_error("late", None), None))
        .await;
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::NotConnected);
}

#[tokio::test]
async fn requests_of_a_client_that_does_not_read_wait() {
    const CALLS: i64 = 100;
    let (mut lines, mut client, mut out) = lines(1 << 16);
    for id in 0..CALLS {
        client.write_all(call(id).as_bytes()).await.unwrap();
    }
    let large = |id: RequestId| {
        let error = ErrorData::internal_error("x".repeat(1 << 20), None);
        ServerJsonRpcMessage::error(error, Some(id))
    };
    // The SDK polls each response in a task.
    let mut sending = tokio::task::JoinSet::new();
    let mut read = 0;
    loop {
        let Poll::Ready(message) = futures_util::poll!(Box::pin(lines.receive())) else { break };
        sending.spawn(lines.send(large(id(message).unwrap())).boxed());
        tokio::task::yield_now().await;
        read += 1;
    }
    let bytes_max = 2 * (WAITING_BYTES_MAX + (1 << 21));
    assert!(read < bytes_max >> 20, "{read} calls were read");
    let answering = async {
        for _ in read..CALLS as usize {
            let message = lines.receive().await;
            sending.spawn(lines.send(large(id(message).unwrap())).boxed());
        }
        while let Some(sent) = sending.join_next().await {
            sent.unwrap().unwrap();
        }
        lines.close().await.unwrap();
    };
    let reading = async {
        let mut answers = BufReader::new(&mut out).lines();
        let mut ids = std::collections::BTreeSet::new();
        while let Some(answer) = answers.next_line().await.unwrap() {
            ids.insert(serde_json::from_str::<Value>(&answer).unwrap()["id"].as_i64().unwrap());
        }
        ids
    };
    let ((), ids) = tokio::join!(answering, reading);
    assert!(ids.into_iter().eq(0..CALLS));
}

#[tokio::test]
async fn a_client_that_is_gone_with_much_output_left_ends_the_connection() {
    let (mut lines, mut client, out) = lines(1 << 16);
    client.write_all([call(1), call(2), call(3)].concat().as_bytes()).await.unwrap();
    lines.receive().await.unwrap();
    lines.receive().await.unwrap();
    drop(out);
    let error = ErrorData::internal_error("x".repeat(WAITING_BYTES_MAX), None);
    for id in [1, 2] {
        let error = ServerJsonRpcMessage::error(error.clone(), Some(RequestId::Number(id)));
        assert!(lines.send(error).await.is_err());
    }
    assert!(lines.receive().await.is_none());
}

#[tokio::test]
async fn the_answers_to_a_batch_are_one_line() {
    let initialize = |version: &str| {
        let parameters = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters}).to_string()
            + "\n"
    };
    let batch = format!(
        "[{},{},{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}]\n",
        call(1).trim(),
        call(2).trim()
    );
    let (mut lines, mut client, mut out) = lines(1 << 16);
    client.write_all((initialize("2025-03-26") + &batch + &call(3)).as_bytes()).await.unwrap();
    for number in 0..3 {
        assert_eq!(id(lines.receive().await), Some(RequestId::Number(number)));
    }
    assert!(lines.receive().await.is_some_and(|message| message.into_notification().is_some()));
    assert_eq!(id(lines.receive().await), Some(RequestId::Number(3)));
    for number in [2, 0, 3, 1] {
        lines.send(answer(number)).await.unwrap();
    }
    let ids = |line: &Value| {
        line.as_array().map(|all| all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>())
    };
    let written = written(&mut out).await;
    assert_eq!(
        written.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(),
        [json!(0), json!(3), Value::Null]
    );
    assert_eq!(ids(&written[2]), Some(vec![json!(2), json!(1)]));

    // A canceled request of a batch has no response to wait for.
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    client
        .write_all(format!("[{},{}]\n{cancel}\n", call(4).trim(), call(5).trim()).as_bytes())
        .await
        .unwrap();
    for _ in 0..2 {
        assert!(lines.receive().await.is_some());
    }
    lines.send(answer(4)).await.unwrap();
    assert!(lines.receive().await.is_some_and(|message| message.into_notification().is_some()));
    drop(client);
    assert!(lines.receive().await.is_none());
    assert_eq!(ids(&self::written(&mut out).await[0]), Some(vec![json!(4)]));
}
