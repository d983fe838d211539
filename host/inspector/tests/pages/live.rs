//! Live updates.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::served::{Served, record_calls, record_many};

/// Connects to the events of a page.
pub(crate) async fn connect(served: &Served, path: &str, cookie: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\nsec-fetch-site: same-origin\r\n\r\n",
        served.address
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads until the text occurs as often as wanted.
pub(crate) async fn read_until(stream: &mut TcpStream, part: &str, times: usize) -> String {
    let mut text = String::new();
    let reading = async {
        let mut buffer = vec![0; 65536];
        while text.matches(part).count() < times {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the stream ended after {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    };
    let is_in_time = tokio::time::timeout(Duration::from_secs(10), reading).await.is_ok();
    assert!(is_in_time, "`{part}` did not come {times} times: {text}");
    text
}

#[tokio::test]
async fn calls_arrive_as_they_are_recorded() {
    let served = Served::new().await;
    let recorder = served.recorder();
    let cookie = served.cookie().await;
    let mut all = connect(&served, "/live", &cookie).await;
    let mut failures = connect(&served, "/live?outcome=failure", &cookie).await;
    read_until(&mut all, ": open", 1).await;
    read_until(&mut failures, ": open", 1).await;
    // The thread that reads the log has looked at it once.
    tokio::time::sleep(Duration::from_millis(600)).await;
    record_calls(&recorder).await;
    let events = read_until(&mut all, "\"id\":", 3).await;
    assert!(events.contains("event: calls\ndata: {\"rows\":"), "{events}");
    assert!(!events.contains("Ulm"), "no payload is sent: {events}");
    let events = read_until(&mut failures, "\"id\":", 1).await;
    assert!(events.contains("\"tool\":\"fail\"") && !events.contains("\"tool\":\"echo\""));
}

#[tokio::test]
async fn a_page_that_connects_again_gets_the_calls_that_it_missed() {
    let served = Served::new().await;
    let recorder = served.recorder();
    record_calls(&recorder).await;
    let page = served.get("/").await.body;
    let (_, rest) = page.split_once("data-from=\"").unwrap();
    let newest = rest.split('"').next().unwrap().to_owned();
    record_calls(&recorder).await;
    let cookie = served.cookie().await;
    let mut stream = connect(&served, &format!("/live?from={newest}"), &cookie).await;
    let events = read_until(&mut stream, "\"id\":", 3).await;
    assert_eq!(events.matches("\"id\":").count(), 3, "{events}");
}

#[tokio::test]
async fn busy_hosts_are_sampled() {
    let served = Served::new().await;
    let recorder = served.recorder();
    let cookie = served.cookie().await;
    let mut stream = connect(&served, "/live", &cookie).await;
    read_until(&mut stream, ": open", 1).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    record_many(&recorder, 200).await;
    let mut events = read_until(&mut stream, "\"left_out\":", 1).await;
    let count = |events: &str| {
        let left_out = events
            .split("\"left_out\":")
            .skip(1)
            .map(|rest| rest.split('}').next().unwrap().parse::<usize>().unwrap());
        left_out.sum::<usize>() + events.matches("\"id\":").count()
    };
    while count(&events) < 600 {
        events.push_str(&read_until(&mut stream, "\n\n", 1).await);
    }
    for event in events.split("event: calls").skip(1) {
        assert!(event.matches("\"id\":").count() <= 40, "{event}");
    }
}

#[tokio::test]
async fn streams_are_limited() {
    let served = Served::new().await;
    served.recorder().close();
    let cookie = served.cookie().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        let mut stream = connect(&served, "/live", &cookie).await;
        read_until(&mut stream, ": open", 1).await;
        streams.push(stream);
    }
    let mut further = connect(&served, "/live", &cookie).await;
    read_until(&mut further, "503 Service Unavailable", 1).await;
    // A closed page makes room.
    drop(streams.pop());
    for _ in 0..50 {
        let mut stream = connect(&served, "/live", &cookie).await;
        if read_until(&mut stream, "HTTP/1.1", 1).await.contains("200 OK") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a closed page made no room");
}
