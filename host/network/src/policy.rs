//! Checks requests against grants and adds the headers that the host provides.

use cofferdam_tool::permission::{
    AddressRange, BoundHeader, HttpGrant, HttpRule, SecretText, is_connection_header,
};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Uri};

use crate::NetworkError;
use crate::target::Target;

/// Returns whether the header `name` is reserved: requesters may neither set it nor see it in a
/// response.
#[must_use]
pub fn is_reserved_header(name: &HeaderName) -> bool {
    is_connection_header(name.as_str())
}

/// Request that the grants permit, in the form in which it is sent.
#[derive(Debug)]
pub struct AdmittedRequest<B> {
    pub(crate) request: Request<B>,
    pub(crate) target: Target,
    /// Non-public addresses that the grants permit to connect to.
    pub(crate) addresses: Vec<AddressRange>,
    /// Names of the headers that the host has set.
    pub(crate) bound: Vec<HeaderName>,
}

impl<B> AdmittedRequest<B> {
    /// Returns the host that the request goes to.
    #[must_use]
    pub fn host(&self) -> &cofferdam_tool::permission::Host {
        &self.target.host
    }

    /// Returns the port that the request goes to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.target.port
    }

    /// Returns the body of the request, for a request that is not sent.
    pub fn into_body(self) -> B {
        self.request.into_body()
    }
}

/// Admits a request if one of `grants` covers it, and replaces the requester's headers with those
/// that the grants bind. If several grants bind the same header, the first one wins.
///
/// # Errors
/// [`NetworkError::Target`] for an invalid URL or method, [`NetworkError::Denied`] with the rule
/// that would grant the request, [`NetworkError::ReservedHeader`], and [`NetworkError::NoSecret`]
/// or [`NetworkError::BadSecret`] for a header that cannot be set.
pub fn admit<B>(
    grants: &[HttpGrant],
    secret: impl Fn(&str) -> Option<SecretText>,
    mut request: Request<B>,
) -> Result<AdmittedRequest<B>, NetworkError> {
    let target = Target::of(request.method(), request.uri())?;
    let seen = target.as_rules_see(request.method(), request.uri());
    let matching: Vec<&HttpGrant> =
        grants.iter().filter(|grant| grant.rule.matches(&seen)).collect();
    if matching.is_empty() {
        let rule = Box::new(HttpRule::for_target(&seen));
        return Err(NetworkError::Denied { rule, is_ambiguous: seen.has_ambiguous_path() });
    }
    let addresses = matching.iter().flat_map(|grant| grant.addresses.iter().copied()).collect();

    let headers = request.headers_mut();
    headers.remove(header::HOST);
    if let Some(reserved) = headers.keys().find(|name| is_reserved_header(name)) {
        return Err(NetworkError::ReservedHeader(reserved.to_string()));
    }
    // A message with two lengths can be read as two messages.
    if headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
        return Err(NetworkError::ReservedHeader(header::CONTENT_LENGTH.to_string()));
    }
    let bound = bind(headers, matching.iter().flat_map(|grant| &grant.headers), secret)?;
    let authority = HeaderValue::try_from(target.authority())
        .map_err(|_| NetworkError::ReservedHeader(header::HOST.to_string()))?;
    headers.insert(header::HOST, authority);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));

    // The request line has only the path and the query. The parts before them were used above and
    // are not sent.
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    Ok(AdmittedRequest { request, target, addresses, bound })
}

fn bind<'g>(
    headers: &mut HeaderMap,
    grants: impl Iterator<Item = &'g BoundHeader>,
    secret: impl Fn(&str) -> Option<SecretText>,
) -> Result<Vec<HeaderName>, NetworkError> {
    let mut bound = Vec::new();
    for header in grants {
        let bad = || NetworkError::BadSecret { header: header.name.clone() };
        let name = HeaderName::try_from(header.name.as_str()).map_err(|_| bad())?;
        if bound.contains(&name) {
            continue;
        }
        let value = header.value.fill(&secret).map_err(|secret| NetworkError::NoSecret {
            header: header.name.clone(),
            secret: secret.to_owned(),
        })?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
        value.set_sensitive(true);
        // Replaces all of the requester's values, however many there are.
        headers.insert(name.clone(), value);
        bound.push(name);
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::permission::HttpRule;

    use super::*;

    fn grant(rule: &str, headers: &[&str]) -> HttpGrant {
        let mut grant = HttpGrant::from(rule.parse::<HttpRule>().unwrap());
        grant.headers = headers.iter().map(|text| text.parse().unwrap()).collect();
        grant
    }

    fn secrets(name: &str) -> Option<SecretText> {
        match name {
            "key" => Some(SecretText::new("k3y")),
            "split" => Some(SecretText::new("a\r\nx: y")),
            _ => None,
        }
    }

    fn admitted(
        grants: &[HttpGrant],
        request: http::request::Builder,
    ) -> Result<AdmittedRequest<()>, NetworkError> {
        admit(grants, secrets, request.body(()).unwrap())
    }

    fn get(url: &str) -> http::request::Builder {
        Request::get(url)
    }

    #[test]
    fn a_request_without_a_grant_names_the_rule_that_would_grant_it() {
        let grants = [grant("GET https://a.example/v1", &[])];
        for (request, rule) in [
            (get("https://b.example/v1?q=1"), "GET https://b.example/v1"),
            (Request::post("https://a.example/v1"), "POST https://a.example/v1"),
            (get("http://a.example/v1"), "GET http://a.example/v1"),
            (get("https://a.example:444/v1"), "GET https://a.example:444/v1"),
            (get("https://a.example/v1/../v2"), "GET https://a.example/"),
            // The rule shown for a target that no rule can name grants nothing when it is typed.
            (Request::builder().method("*").uri("https://a.example/"), "*? https://a.example/"),
            (
                Request::builder().method("G'ET").uri("https://a.example/"),
                "G'ET? https://a.example/",
            ),
        ] {
            match admitted(&grants, request) {
                Err(NetworkError::Denied { rule: offered, is_ambiguous }) => {
                    assert_eq!(offered.to_string(), rule);
                    assert_eq!(is_ambiguous, rule == "GET https://a.example/", "{rule}");
                }
                other => panic!("{rule}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_request_is_sent_as_it_was_checked() {
        let grants = [grant("https://a.example/", &[])];
        let sent =
            admitted(&grants, get("https://A.example:443/x?y=z#f").header("host", "b.example"))
                .unwrap();
        assert_eq!(sent.request.uri(), "/x?y=z");
        assert_eq!(sent.request.headers()["host"], "a.example");
        assert_eq!(sent.request.headers()["connection"], "close");
        assert_eq!(admitted(&grants, get("https://a.example")).unwrap().request.uri(), "/");
        assert_eq!(
            admitted(&grants, get("https://a.example?q")).unwrap().request.uri().to_string(),
            "/?q"
        );
    }

    #[test]
    fn headers_of_the_connection_are_refused() {
        let grants = [grant("https://a.example/", &[])];
        for name in ["connection", "transfer-encoding", "upgrade", "proxy-authorization", "te"] {
            let error = admitted(&grants, get("https://a.example/").header(name, "x")).unwrap_err();
            assert!(matches!(error, NetworkError::ReservedHeader(_)), "{name}: {error:?}");
        }
        let twice =
            get("https://a.example/").header("content-length", "1").header("content-length", "2");
        assert!(matches!(admitted(&grants, twice), Err(NetworkError::ReservedHeader(_))));
    }

    #[test]
    fn a_bound_header_replaces_every_value_and_the_first_grant_counts() {
        let grants = [
            grant("https://a.example/v1", &["Authorization: Bearer ${secret:key}"]),
            grant("https://a.example/", &["Authorization: other", "X-More: 1"]),
            grant("https://b.example/", &[]),
        ];
        let request = get("https://a.example/v1")
            .header("authorization", "mine")
            .header("authorization", "also mine");
        let sent = admitted(&grants, request).unwrap();
        let values: Vec<_> = sent.request.headers().get_all("authorization").iter().collect();
        assert_eq!(values, ["Bearer k3y"]);
        assert_eq!(sent.request.headers()["x-more"], "1");
        assert!(!format!("{sent:?}").contains("k3y"));
        let elsewhere =
            admitted(&grants, get("https://b.example/").header("authorization", "mine")).unwrap();
        assert_eq!(elsewhere.request.headers()["authorization"], "mine");
    }

    #[test]
    fn a_header_that_cannot_be_set_stops_the_request() {
        let missing = [grant("https://a.example/", &["x: ${secret:none}"])];
        let error = admitted(&missing, get("https://a.example/")).unwrap_err();
        assert!(
            matches!(&error, NetworkError::NoSecret { secret, .. } if secret == "none"),
            "{error:?}"
        );
        let split = [grant("https://a.example/", &["x: ${secret:split}"])];
        let error = admitted(&split, get("https://a.example/")).unwrap_err();
        assert!(matches!(error, NetworkError::BadSecret { .. }), "{error:?}");
    }
}
