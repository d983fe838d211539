use super::*;

fn next(method: &str, status: u16, location: &str, body: Body) -> Option<(String, String)> {
    let request = Request { body, ..Request::new(method, "") };
    let hop = Hop { url: Url::parse("http://a/b").unwrap(), method: method.to_owned() };
    let head = Head { status, headers: vec![("Location".to_owned(), location.to_owned())] };
    let next = next_hop(&request, &hop, &head).unwrap()?;
    Some((next.method, next.url.to_string()))
}

#[test]
fn redirects_change_methods() {
    for (method, status, expected) in [
        ("GET", 301, "GET"),
        ("POST", 301, "GET"),
        ("PUT", 302, "PUT"),
        ("POST", 302, "GET"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("POST", 307, "POST"),
        ("DELETE", 308, "DELETE"),
    ] {
        let found = next(method, status, "c", Body::None);
        assert_eq!(
            found,
            Some((expected.to_owned(), "http://a/c".to_owned())),
            "{method} {status}"
        );
    }
    assert_eq!(next("GET", 304, "c", Body::None), None);
    assert_eq!(next("GET", 200, "c", Body::None), None);
}

#[test]
fn a_source_is_not_sent_twice() {
    let source = || Body::Source(Box::new(io::empty()));
    assert_eq!(next("PUT", 307, "c", source()), None);
    assert!(next("POST", 303, "c", source()).is_some());
}

#[test]
fn lengths_are_added() {
    for (method, body, length) in [
        ("GET", Body::None, None),
        ("POST", Body::None, Some("0")),
        ("PUT", Body::Bytes(vec![1, 2]), Some("2")),
        ("PUT", Body::Source(Box::new(io::empty())), None),
    ] {
        let mut request = Request { body, ..Request::new(method, "") };
        request.add_length(method);
        let found = request.headers.first().map(|(_, value)| value.as_str());
        assert_eq!(found, length, "{method}");
    }
}

#[test]
fn requests_fail_outside_a_component() {
    let error = get("https://example.com/").send().unwrap_err();
    assert!(matches!(&error, Error::Connection(text) if text.contains("example.com")), "{error}");
    assert!(matches!(get("example").send(), Err(Error::Invalid(_))));
}

#[test]
fn errors_keep_their_text() {
    let error = Error::Refused("a: no grant for this request".to_owned());
    let failure = crate::ToolFailure::from(error.clone());
    assert_eq!(failure.message(), "a: no grant for this request");
    assert_eq!(failure.is_transient(), Some(false));
    let failure = crate::ToolFailure::from(io::Error::from(error));
    assert_eq!(failure.message(), "a: no grant for this request");
}
