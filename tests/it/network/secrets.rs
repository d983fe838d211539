//! Credentials that a guest uses and never sees.

use cofferdam_network::ClientConfig;

use super::server::Server;
use super::{ask, get, grant, host_with, refused};

const SECRET: &str = "s3cr3t-value";

#[tokio::test]
async fn a_bound_header_reaches_its_host_and_not_the_guest() {
    let (server, other) = (Server::start().await, Server::start().await);
    let grants = vec![
        grant(
            &server.url("/"),
            &[],
            &["Authorization: Bearer ${secret:key}", "X-Plain: set by the host"],
        ),
        grant(&other.url("/"), &[], &[]),
    ];
    let host = host_with(grants, ClientConfig::default()).await;
    let headers = "authorization: mine|Authorization: also mine|x-plain: mine";
    let completion = host
        .call(
            "http",
            &serde_json::json!({"url": server.url("/fine"), "headers": headers}).to_string(),
        )
        .await;
    let request = server.requests().remove(0);
    assert_eq!(request.matches("authorization: ").count(), 1, "{request}");
    assert!(request.contains(&format!("authorization: Bearer {SECRET}\r\n")), "{request}");
    assert!(
        request.contains("x-plain: set by the host\r\n") && !request.contains("mine"),
        "{request}"
    );
    assert!(!format!("{completion:?}").contains(SECRET), "{completion:?}");
    assert!(!format!("{:?}", host.grants).contains(SECRET), "{:?}", host.grants);

    let (answer, _) = ask(&host, &[("url", &other.url("/echo")), ("headers", headers)]).await;
    assert!(answer.contains("authorization: mine\r\n"), "{answer}");
    assert!(!other.requests()[0].contains(SECRET));
}

#[tokio::test]
async fn a_redirect_does_not_take_a_bound_header_along() {
    let (server, other) = (Server::start().await, Server::start().await);
    let bound = "X-Api-Key: ${secret:key}";
    let grants = vec![grant(&server.url("/"), &[], &[bound]), grant(&other.url("/"), &[], &[])];
    let host = host_with(grants, ClientConfig::default()).await;
    let url = server.url(&format!("/redirect/{}", other.url("/echo")));
    let (answer, _) = ask(&host, &[("url", &url), ("follow", "yes")]).await;
    assert!(answer.starts_with("200\n") && !answer.contains(SECRET), "{answer}");
    assert!(server.requests()[0].contains(SECRET) && !other.requests()[0].contains(SECRET));
}

#[tokio::test]
async fn a_trailer_cannot_stand_in_for_a_bound_header() {
    let server = Server::start().await;
    let bound = ["X-Api-Key: ${secret:key}"];
    let host = host_with(vec![grant(&server.url("/"), &[], &bound)], ClientConfig::default()).await;
    for (trailer, is_sent) in [("x-api-key: mine", false), ("x-sum: 1", true)] {
        let ask_for = [
            ("method", "POST"),
            ("url", &server.url("/fine")),
            ("headers", "trailer: x-api-key, x-sum"),
            ("body", "hello"),
            ("trailer", trailer),
        ];
        let (answer, _) = ask(&host, &ask_for).await;
        assert!(answer.ends_with("fine"), "{answer}");
        assert_eq!(
            server.requests().pop().unwrap().contains(trailer),
            is_sent,
            "{:?}",
            server.requests()
        );
    }
}

#[tokio::test]
async fn a_secret_that_is_not_there_stops_the_request() {
    let server = Server::start().await;
    let bound = ["Authorization: Bearer ${secret:other}"];
    let host = host_with(vec![grant(&server.url("/"), &[], &bound)], ClientConfig::default()).await;
    let (answer, record) = get(&host, &server.url("/fine")).await;
    assert_eq!(answer, "error: ErrorCode::ConfigurationError");
    assert_eq!(refused(&record), ["secret:other"]);
    assert_eq!(server.open_most(), 0);
}
