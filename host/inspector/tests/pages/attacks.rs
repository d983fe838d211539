//! Requests that the user did not make.

use std::net::SocketAddr;

use cofferdam_inspector::{Inspector, InspectorError, InspectorOptions};

use crate::served::{Served, record_calls};

#[tokio::test]
async fn other_machines_are_not_served() {
    for address in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
        let address: SocketAddr = address.parse().unwrap();
        let options = InspectorOptions::new("log");
        let refused = Inspector::listen(options, address).await.unwrap_err();
        assert!(matches!(refused, InspectorError::NotLoopback(_)), "{address}");
        assert_eq!(
            refused.to_string(),
            format!("{address} can be reached from other machines; listen on 127.0.0.1 or [::1]")
        );
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_refused() {
    let served = Served::new().await;
    let cookie = served.cookie().await;
    let port = served.address.port();
    let foreign = [
        format!("evil.example:{port}"),
        format!("127.0.0.1.nip.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
    ];
    for host in &foreign {
        let headers =
            [("host", host.as_str()), ("cookie", &*cookie), ("sec-fetch-site", "same-origin")];
        let reply = served.send("GET", "/", &headers, "").await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (403, "expected `Host` to be the address that was printed\n"),
            "{host}"
        );
    }
}

#[tokio::test]
async fn pages_of_other_sites_get_nothing() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let cookie = served.cookie().await;
    let own = format!("http://{}", served.address);
    // A script of another page, which sends the cookie of another port along.
    for (method, path) in [("GET", "/"), ("GET", "/live"), ("POST", "/session"), ("OPTIONS", "/")] {
        for (origin, site) in [
            ("https://evil.example", "cross-site"),
            ("http://localhost:3000", "same-site"),
            ("null", "cross-site"),
            (own.as_str(), "cross-site"),
        ] {
            let headers = [("origin", origin), ("sec-fetch-site", site), ("cookie", &*cookie)];
            let reply = served.send(method, path, &headers, "{}").await;
            assert_eq!(reply.status, 403, "{method} {path} {origin} {site}");
            assert!(!reply.head.contains("access-control"), "{}", reply.head);
        }
    }
    // A link or an image of another page.
    let headers = [("sec-fetch-site", "cross-site"), ("cookie", &*cookie)];
    let reply = served.send("GET", "/", &headers, "").await;
    assert_eq!(reply.status, 403);
    assert!(!reply.body.contains("echo"));
}

#[tokio::test]
async fn a_form_of_another_page_logs_nobody_in() {
    let served = Served::new().await;
    let own = format!("http://{}", served.address);
    let address = served.inspector.login_address().unwrap();
    let (_, key) = address.split_once("#k=").unwrap();
    let body = format!(r#"{{"key":"{key}"}}"#);
    // A form cannot send JSON, nor a header of its own.
    for headers in [
        vec![("origin", own.as_str()), ("content-type", "text/plain"), ("x-cofferdam", "login")],
        vec![("origin", own.as_str()), ("content-type", "application/json")],
        vec![("content-type", "application/json"), ("x-cofferdam", "login")],
    ] {
        let reply = served.send("POST", "/session", &headers, &body).await;
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    // The key still works, once.
    assert_eq!(served.log_in(key).await.status, 200);
    let again = served.log_in(key).await;
    assert_eq!((again.status, again.body.as_str()), (403, "the key was used, or is too old\n"));
    let long = "k".repeat(100_000);
    assert_eq!(served.log_in(&long).await.status, 413);
}

#[tokio::test]
async fn only_a_browser_that_logged_in_sees_calls() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let cookie = served.cookie().await;
    let (name, value) = cookie.split_once('=').unwrap();
    let port = served.address.port();
    assert_eq!(name, format!("cofferdam_{port}"));
    let other_port = format!("cofferdam_{}={value}", port.wrapping_add(1));
    let guess = format!("{name}=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let none = String::new();
    for cookie in [&none, &other_port, &guess] {
        for path in ["/", "/call/1", "/tools", "/live", "/health"] {
            let mut headers = vec![("sec-fetch-site", "same-origin")];
            if !cookie.is_empty() {
                headers.push(("cookie", cookie));
            }
            let reply = served.send("GET", path, &headers, "").await;
            assert_eq!(reply.status, 200);
            assert!(reply.body.contains("To log in, open the address"), "{path} {cookie}");
            assert!(!reply.body.contains("echo") && !reply.body.contains("samples"));
        }
    }
    // The cookie of another inspector on this machine.
    let other = Served::new().await.cookie().await;
    let (_, other) = other.split_once('=').unwrap();
    let other = format!("{name}={other}");
    let headers = [("sec-fetch-site", "same-origin"), ("cookie", other.as_str())];
    assert!(served.send("GET", "/", &headers, "").await.body.contains("To log in"));
    // A client that states no site cannot use a cookie.
    assert_eq!(served.send("GET", "/", &[("cookie", &*cookie)], "").await.status, 403);
}

#[tokio::test]
async fn pages_cannot_be_framed_and_changes_nothing_by_get() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let cookie = served.cookie().await;
    for destination in ["iframe", "frame", "embed", "object"] {
        let headers = [
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", destination),
            ("cookie", &*cookie),
        ];
        assert_eq!(served.send("GET", "/", &headers, "").await.status, 403, "{destination}");
    }
    let own = format!("http://{}", served.address);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let headers =
            [("sec-fetch-site", "same-origin"), ("origin", own.as_str()), ("cookie", &*cookie)];
        let reply = served.send(method, "/", &headers, "").await;
        assert_eq!(reply.status, 405, "{method}");
    }
}

#[tokio::test]
async fn every_response_confines_its_page() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let refused = served.send("GET", "/", &[("host", "evil.example")], "").await;
    let login = served.send("GET", "/", &[], "").await;
    for reply in [refused, login, served.get("/").await, served.get("/nothing").await] {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'; require-trusted-types-for 'script'",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(reply.head.contains(header), "{header} is missing in {}", reply.head);
        }
        assert!(!reply.head.contains("unsafe"), "{}", reply.head);
    }
}

#[tokio::test]
async fn damaged_requests_are_answered_or_closed() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let cookie = served.cookie().await;
    let headers = [("cookie", &*cookie), ("sec-fetch-site", "same-origin")];
    for path in [
        "/call/",
        "/call/../../etc/passwd",
        "/call/%2e%2e",
        "/call/zz",
        "/call/a/b/c",
        "//",
        "/%00",
        "/assets/0000000000000000/style.css",
        "/?after=1&limit=99999999",
        "/call/aaaaaaaa-1/key",
        "/session?name=",
        "/favicon.ico",
    ] {
        let reply = served.send("GET", path, &headers, "").await;
        assert!([400, 404].contains(&reply.status), "{path}: {}", reply.status);
    }
    let long = format!("/?tool={}", "a".repeat(60_000));
    assert!(served.send("GET", &long, &headers, "").await.status >= 400);
}
