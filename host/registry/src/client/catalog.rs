//! Searches in registries that speak the API of the MCP registry, version 0.1.

use reqwest::Url;

use super::RegistryClient;
use super::web::at_address;
use crate::RegistryError;
use crate::catalog::{CATALOG_BYTES_MAX, CATALOG_SERVERS_MAX, CatalogPage, ListedServer};
use crate::error::RegistryErrorKind;

/// Maximum number of servers of a page, which the API has as well.
const PAGE_SERVERS_MAX: usize = 100;
/// Maximum number of pages of a search.
const PAGES_MAX: usize = CATALOG_SERVERS_MAX / PAGE_SERVERS_MAX;

/// Result of a search in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogSearch {
    /// Servers that the registry has found.
    pub servers: Vec<ListedServer>,
    /// Number of entries that cannot be used.
    pub skipped: usize,
    /// Whether the registry has more pages than are read.
    pub is_cut: bool,
}

impl RegistryClient {
    /// Searches the latest versions of servers in the registry at `base`, such as
    /// `https://registry.modelcontextprotocol.io`. Reads at most 10 pages, and sends no credentials.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached, or answers with something else than a
    /// catalog.
    pub async fn search(&self, base: &str, term: &str) -> Result<CatalogSearch, RegistryError> {
        let mut found = CatalogSearch { servers: Vec::new(), skipped: 0, is_cut: false };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let address = page_address(base, term, cursor.as_deref());
            let bytes = self.read_web(&address, CATALOG_BYTES_MAX).await?;
            let page = CatalogPage::parse(&bytes, PAGE_SERVERS_MAX).map_err(|error| {
                at_address(RegistryErrorKind::Malformed(error.to_string()), &address, "reading")
            })?;
            found.servers.extend(page.servers);
            found.skipped = found.skipped.saturating_add(page.skipped);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(found);
            }
        }
        found.is_cut = true;
        Ok(found)
    }
}

/// Returns the address of a page of a search. An invalid base is returned unchanged.
fn page_address(base: &str, term: &str, cursor: Option<&str>) -> String {
    let Ok(mut url) = Url::parse(base) else { return base.to_owned() };
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["v0.1", "servers"]);
    }
    url.set_query(None);
    url.query_pairs_mut()
        .append_pair("search", term)
        .append_pair("version", "latest")
        .append_pair("limit", &PAGE_SERVERS_MAX.to_string());
    if let Some(cursor) = cursor {
        url.query_pairs_mut().append_pair("cursor", cursor);
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Reply, Request, TestRegistry};
    use crate::{RegistrySettings, ServerStatus};

    /// Starts a registry with these answers, and searches it for `csv`.
    async fn search(
        reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> (Result<CatalogSearch, RegistryError>, Vec<Request>) {
        let registry = TestRegistry::start().await.unwrap();
        registry.intercept(move |request| Some(reply(request)));
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        let found = client.search(&format!("http://{}", registry.host()), "csv & x").await;
        (found, registry.take_requests())
    }

    fn page(names: &[&str], cursor: Option<&str>) -> Reply {
        let server = |name: &&str| json!({"server": {"name": name, "version": "1"}});
        let servers: Vec<Value> = names.iter().map(server).collect();
        let page = json!({"servers": servers, "metadata": {"nextCursor": cursor}});
        Reply::new(200, page.to_string())
    }

    async fn refusal(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> String {
        search(reply).await.0.unwrap_err().kind.to_string()
    }

    #[tokio::test]
    async fn pages_are_read_to_the_end_without_credentials() {
        let (found, requests) = search(|request| match request.path.contains("cursor") {
            false => page(&["acme/csv"], Some("a/b:1 &c=d")),
            true => page(&["acme/tsv"], None),
        })
        .await;
        let found = found.unwrap();
        let names: Vec<_> = found.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!((names, found.is_cut), (vec!["acme/csv", "acme/tsv"], false));
        assert!(found.servers.iter().all(|server| server.status == ServerStatus::Active));
        let paths: Vec<_> = requests.iter().map(|request| request.path.as_str()).collect();
        let first = "/v0.1/servers?search=csv+%26+x&version=latest&limit=100";
        assert_eq!(paths, [first, &format!("{first}&cursor=a%2Fb%3A1+%26c%3Dd")]);
        assert!(requests.iter().all(|request| !request.headers.contains_key("authorization")));
    }

    #[tokio::test]
    async fn a_registry_without_an_end_is_read_for_ten_pages() {
        let (found, requests) = search(|_| page(&["acme/csv"], Some("again"))).await;
        let found = found.unwrap();
        assert_eq!((found.servers.len(), found.is_cut, requests.len()), (10, true, 10));
    }

    #[tokio::test]
    async fn other_answers_are_errors() {
        let names = ["acme/csv"; 101];
        assert!(refusal(move |_| page(&names, None)).await.contains("it lists 101 servers"));
        assert!(refusal(|_| Reply::endless()).await.contains("larger than 4194304 bytes"));
        assert!(refusal(|_| Reply::new(200, "<html>")).await.contains("expected JSON"));
        assert!(refusal(|_| Reply::new(200, "[]")).await.contains("the array `servers`"));
        assert_eq!(refusal(|_| Reply::new(404, "")).await, "not found (HTTP 404)");
        assert_eq!(refusal(|_| Reply::new(503, "")).await, "HTTP 503");
        let redirect = |target: &'static str| {
            refusal(move |_| Reply::new(302, "").with_header("location", target))
        };
        assert!(redirect("http://example.com/").await.contains("not encrypted"));
        assert!(redirect("https://10.0.0.1/").await.contains("not a public address"));
        assert!(redirect("/v0.1/servers").await.contains("more than 3 redirects"));
    }

    #[tokio::test]
    async fn documents_come_from_https_addresses_or_this_machine() {
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        for address in ["http://example.com/x", "ftp://localhost/x", "plugins.json", ""] {
            let refused = client.read_web(address, 1).await.unwrap_err();
            assert!(refused.to_string().contains("is not an https address"), "{refused}");
        }
    }

    #[test]
    fn the_path_of_a_base_stays() {
        for base in ["https://example.com/mcp", "https://example.com/mcp/?x=1"] {
            let address = page_address(base, "a", None);
            let expected = "https://example.com/mcp/v0.1/servers?search=a&version=latest&limit=100";
            assert_eq!(address, expected);
        }
    }
}
