//! Requests to authorization servers. Their addresses come from the MCP server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_tool::permission::is_public_address;
use futures_util::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rmcp::transport::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};
use url::{Host, Url};

use crate::client::settings::{HttpEndpoint, is_loopback};
use crate::web::{ClientError, builder};

/// Maximum size of a response body. Documents of authorization servers are a few KiB.
const BODY_BYTES_MAX: usize = 1024 * 1024;
const REDIRECTS_MAX: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of documents that are requested to find an authorization server. A server may
/// name any number of them, at other hosts.
const DOCUMENTS_MAX: usize = 32;

/// The two HTTP clients for rmcp's requests: one follows redirects, the other does not.
pub(super) struct Fetch {
    following: reqwest::Client,
    stopping: reqwest::Client,
    rule: Rule,
    /// Number of documents since the discovery began.
    documents: AtomicUsize,
}

/// Rule for the addresses that may be contacted.
#[derive(Debug, Clone, Copy)]
struct Rule {
    loopback: bool,
    private: bool,
}

#[derive(Debug, thiserror::Error)]
enum FetchRefusal {
    #[error("the address is not one that a server may name")]
    Address,
    #[error("the answer is too large")]
    TooLarge,
    #[error("more than {DOCUMENTS_MAX} documents were named to find an authorization server")]
    TooMany,
}

impl Rule {
    fn takes(self, address: IpAddr) -> bool {
        let is_private = match address.to_canonical() {
            IpAddr::V4(address) => address.is_private(),
            IpAddr::V6(address) => address.is_unique_local(),
        };
        is_public_address(address)
            || self.loopback && address.to_canonical().is_loopback()
            || self.private && is_private
    }

    /// Returns true if an address may be contacted, judging by the URL only. Host names are checked
    /// again when they are resolved.
    fn takes_url(self, url: &Url) -> bool {
        let is_secret =
            url.scheme() == "https" || url.scheme() == "http" && self.loopback && is_loopback(url);
        is_secret
            && match url.host() {
                Some(Host::Ipv4(address)) => self.takes(address.into()),
                Some(Host::Ipv6(address)) => self.takes(address.into()),
                Some(Host::Domain(_)) => true,
                None => false,
            }
    }
}

impl Resolve for Rule {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let taken: Vec<SocketAddr> = found.filter(|address| rule.takes(address.ip())).collect();
            if taken.is_empty() {
                return Err(FetchRefusal::Address.into());
            }
            Ok(Box::new(taken.into_iter()) as Addrs)
        })
    }
}

impl Fetch {
    /// Creates the clients. The authorization server of an MCP server on this machine may be on
    /// this machine as well.
    pub(super) fn new(endpoint: &HttpEndpoint, private: bool) -> Result<Self, ClientError> {
        let rule = Rule { loopback: is_loopback(endpoint.url()), private };
        let client = |redirects| -> Result<_, ClientError> {
            let builder = builder()?.dns_resolver(Arc::new(rule)).timeout(TIMEOUT);
            Ok(builder.redirect(redirects).build()?)
        };
        let following = Policy::custom(move |attempt| {
            if attempt.previous().len() <= REDIRECTS_MAX && rule.takes_url(attempt.url()) {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        let (following, stopping) = (client(following)?, client(Policy::none())?);
        Ok(Self { following, stopping, rule, documents: AtomicUsize::new(0) })
    }

    /// Begins to count the documents of a discovery.
    pub(super) fn begin_discovery(&self) {
        self.documents.store(0, Ordering::Relaxed);
    }

    async fn send(
        &self,
        request: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let client = match request.redirect_policy {
            OAuthHttpRedirectPolicy::Follow => &self.following,
            _ => &self.stopping,
        };
        let request = reqwest::Request::try_from(request.request)?;
        if !self.rule.takes_url(request.url()) {
            return Err(FetchRefusal::Address.into());
        }
        // Everything else is sent with POST.
        if request.method() == http::Method::GET
            && self.documents.fetch_add(1, Ordering::Relaxed) >= DOCUMENTS_MAX
        {
            return Err(FetchRefusal::TooMany.into());
        }
        let response = client.execute(request).await?;
        let mut answer = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let (mut stream, mut body) = (response.bytes_stream(), Vec::new());
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            if chunk.len() > BODY_BYTES_MAX.saturating_sub(body.len()) {
                return Err(FetchRefusal::TooLarge.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(answer.body(body)?)
    }
}

impl OAuthHttpClient for Fetch {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_cannot_name_addresses_in_here() {
        let rule = Rule { loopback: false, private: false };
        let takes = |rule: Rule, url: &str| rule.takes_url(&Url::parse(url).unwrap());
        for url in [
            "http://a.example/",
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "https://[::1]/",
            "https://169.254.169.254/",
        ] {
            assert!(!takes(rule, url), "{url}");
        }
        assert!(takes(rule, "https://auth.example/"));
        assert!(!rule.takes("::ffff:127.0.0.1".parse().unwrap()));
        assert!(takes(Rule { loopback: true, private: false }, "http://localhost:1/"));
        assert!(takes(Rule { loopback: false, private: true }, "https://10.0.0.1/"));
    }
}
