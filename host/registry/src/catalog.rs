//! Catalogs of MCP servers: responses of registries that speak the API of the MCP registry, and
//! index files of the same shape.
//!
//! Third parties write the entries. One that cannot be used is left out and counted, and the others
//! stay. Strings are shortened, and control characters removed. A catalog only says where a plugin
//! is: digests and signatures are checked when it is added.

use serde::Serialize;
use serde_json::Value;

use crate::Reference;
use crate::statement::shown;

/// Maximum size of a page or of an index file in bytes.
pub const CATALOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of servers of an index file, and of all pages of a registry together.
pub(crate) const CATALOG_SERVERS_MAX: usize = 1_000;
/// Member of `_meta` with the metadata of the publisher.
pub(crate) const PUBLISHER_PROVIDED: &str = "io.modelcontextprotocol.registry/publisher-provided";
/// Member of the publisher's metadata that makes a server a plugin.
pub(crate) const EXTENSION: &str = "cofferdam";
/// Type of packages in OCI registries.
pub(crate) const OCI: &str = "oci";
/// Member of `_meta` with the metadata of the registry.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
/// Maximum number of packages of a server that are read.
const PACKAGES_MAX: usize = 16;
/// Maximum length of a cursor in bytes.
const CURSOR_BYTES_MAX: usize = 1_024;

/// Servers of one response or index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogPage {
    /// Servers.
    pub servers: Vec<ListedServer>,
    /// Number of entries that cannot be used.
    pub skipped: usize,
    /// Cursor of the next page.
    pub(crate) next: Option<String>,
}

/// Server in a catalog. A third party wrote the strings; they are shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedServer {
    /// Name, such as `io.github.acme/csv`.
    pub name: String,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Version.
    pub version: String,
    /// Description.
    pub description: String,
    /// Address of the source code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// State in the catalog.
    pub status: ServerStatus,
    /// Reference of the component, if the server is a plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<Reference>,
    /// Packages.
    pub packages: Vec<ListedPackage>,
    /// Whether the server can be reached at an address.
    pub is_remote: bool,
}

/// Package of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedPackage {
    /// Type, such as `npm` or `oci`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name or address.
    pub identifier: String,
    /// Version, unless the identifier contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// State of a server in a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerStatus {
    /// The server can be used.
    Active,
    /// The publisher advises against it.
    Deprecated,
    /// The publisher or the registry has removed it.
    Deleted,
    /// The registry has a state for it that is not known here.
    Unknown,
}

/// Error of a document that is not a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The document is not JSON.
    #[error("expected JSON: {0}")]
    Json(String),
    /// The document has another shape.
    #[error("expected an object with the array `servers`")]
    Shape,
    /// The document lists too many servers.
    #[error("it lists {count} servers; at most {max} are accepted")]
    TooMany {
        /// Number of servers.
        count: usize,
        /// Limit.
        max: usize,
    },
    /// The cursor of the next page is too long.
    #[error("`nextCursor` is longer than {CURSOR_BYTES_MAX} bytes")]
    Cursor,
}

impl CatalogPage {
    /// Parses an index file: `{"servers": [{"server": {…}}]}`, where `server` is the content of a
    /// `server.json`.
    ///
    /// # Errors
    /// Returns an error if the document is not a catalog, or lists too many servers.
    pub fn from_index(json: &[u8]) -> Result<Self, CatalogError> {
        Self::parse(json, CATALOG_SERVERS_MAX)
    }

    /// Parses a document of at most [`CATALOG_BYTES_MAX`] bytes and `servers_max` servers.
    pub(crate) fn parse(json: &[u8], servers_max: usize) -> Result<Self, CatalogError> {
        let document: Value =
            serde_json::from_slice(json).map_err(|error| CatalogError::Json(error.to_string()))?;
        let entries = match document.get("servers") {
            Some(Value::Array(entries)) => entries.as_slice(),
            // Some registries write an empty list like this.
            Some(Value::Null) => &[],
            _ => return Err(CatalogError::Shape),
        };
        let count = entries.len();
        if count > servers_max {
            return Err(CatalogError::TooMany { count, max: servers_max });
        }
        let servers: Vec<_> = entries.iter().filter_map(ListedServer::of).collect();
        let skipped = count.saturating_sub(servers.len());
        let next = document.pointer("/metadata/nextCursor").and_then(Value::as_str);
        let next = next.filter(|cursor| !cursor.is_empty()).map(str::to_owned);
        if next.as_ref().is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX) {
            return Err(CatalogError::Cursor);
        }
        Ok(Self { servers, skipped, next })
    }
}

impl ListedServer {
    /// Reads an entry. Returns `None` for one without a name or a version.
    fn of(entry: &Value) -> Option<Self> {
        let server = entry.get("server")?;
        let array = |key: &str| server.get(key).and_then(Value::as_array);
        let packages = array("packages").map(Vec::as_slice).unwrap_or_default();
        let packages = packages.get(..PACKAGES_MAX).unwrap_or(packages);
        Some(Self {
            name: string(server, "name")?,
            title: string(server, "title"),
            version: string(server, "version")?,
            description: string(server, "description").unwrap_or_default(),
            repository: server.get("repository").and_then(|it| string(it, "url")),
            status: ServerStatus::of(entry),
            component: component(server, packages),
            packages: packages.iter().filter_map(ListedPackage::of).collect(),
            is_remote: array("remotes").is_some_and(|remotes| !remotes.is_empty()),
        })
    }

    /// Returns whether name, title or description contain `term`, in upper or lower case.
    #[must_use]
    pub fn matches(&self, term: &str) -> bool {
        let term = term.to_lowercase();
        let title = self.title.as_deref().unwrap_or_default();
        [&self.name, title, &self.description].iter().any(|it| it.to_lowercase().contains(&term))
    }
}

impl ListedPackage {
    fn of(package: &Value) -> Option<Self> {
        Some(Self {
            kind: string(package, "registryType")?,
            identifier: string(package, "identifier")?,
            version: string(package, "version"),
        })
    }
}

impl ServerStatus {
    fn of(entry: &Value) -> Self {
        let official = entry.get("_meta").and_then(|meta| meta.get(OFFICIAL));
        match official.and_then(|official| official.get("status")).map(Value::as_str) {
            None | Some(Some("active")) => Self::Active,
            Some(Some("deprecated")) => Self::Deprecated,
            Some(Some("deleted")) => Self::Deleted,
            Some(_) => Self::Unknown,
        }
    }

    /// Returns the name of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Deleted => "deleted",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns the reference of the component that the publisher names: with a digest, or with `true`
/// the only package in an OCI registry.
fn component(server: &Value, packages: &[Value]) -> Option<Reference> {
    match server.get("_meta")?.get(PUBLISHER_PROVIDED)?.get(EXTENSION)? {
        Value::Bool(true) => {
            let is_oci = |it: &&Value| it.get("registryType").and_then(Value::as_str) == Some(OCI);
            let mut found = packages.iter().filter(is_oci);
            let (Some(only), None) = (found.next(), found.next()) else { return None };
            format!("oci://{}", only.get("identifier")?.as_str()?).parse().ok()
        }
        extension => {
            let named: Option<Reference> = extension.get("component")?.as_str()?.parse().ok();
            named.filter(|reference| reference.digest().is_some())
        }
    }
}

/// Returns the beginning of a string member, or `None` if nothing of it can be shown.
fn string(object: &Value, key: &str) -> Option<String> {
    let string = shown(object.get(key)?.as_str()?);
    let string = string.trim();
    (!string.is_empty()).then(|| string.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn parse(servers: &Value) -> CatalogPage {
        CatalogPage::from_index(json!({"servers": servers}).to_string().as_bytes()).unwrap()
    }

    fn with_extension(extension: &Value, packages: &Value) -> Option<String> {
        let server = json!({
            "name": "io.github.acme/csv", "version": "1.0", "packages": packages,
            "_meta": {PUBLISHER_PROVIDED: {EXTENSION: extension}},
        });
        let page = parse(&json!([{"server": server}]));
        page.servers.first().unwrap().component.as_ref().map(ToString::to_string)
    }

    #[test]
    fn a_response_of_the_registry_is_read() {
        let page = json!({
            "servers": [{
                "server": {
                    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
                    "name": "io.github.acme/csv",
                    "title": "CSV",
                    "description": "Reads CSV files",
                    "version": "1.2.0",
                    "repository": {"url": "https://github.com/acme/csv", "source": "github"},
                    "packages": [
                        {"registryType": "npm", "identifier": "@acme/csv", "version": "1.2.0",
                         "transport": {"type": "stdio"}},
                        {"registryType": 7},
                    ],
                    "remotes": [{"type": "streamable-http", "url": "https://csv.example/mcp"}],
                },
                "_meta": {OFFICIAL: {"status": "deprecated", "isLatest": true}},
            }],
            "metadata": {"nextCursor": "io.github.acme/csv:1.2.0", "count": 1},
        });
        let page = CatalogPage::from_index(page.to_string().as_bytes()).unwrap();
        assert_eq!(page.next.as_deref(), Some("io.github.acme/csv:1.2.0"));
        let server = page.servers.first().unwrap();
        let expected = json!({
            "name": "io.github.acme/csv", "title": "CSV", "description": "Reads CSV files",
            "version": "1.2.0", "repository": "https://github.com/acme/csv",
            "status": "deprecated", "is_remote": true,
            "packages": [{"type": "npm", "identifier": "@acme/csv", "version": "1.2.0"}],
        });
        assert_eq!(json!(server), expected);
        for (term, expected) in [("ACME", true), ("csv f", true), ("", true), ("tsv", false)] {
            assert_eq!(server.matches(term), expected, "{term}");
        }
    }

    #[test]
    fn a_plugin_is_named_with_a_digest_or_is_the_only_oci_package() {
        let oci = |identifier: &str| json!({"registryType": "oci", "identifier": identifier});
        let pinned = format!("oci://ghcr.io/acme/csv:1.0@{DIGEST}");
        let named = |component: &str| with_extension(&json!({"component": component}), &json!([]));
        assert_eq!(named(&pinned), Some(pinned.clone()));
        for other in ["oci://ghcr.io/acme/csv:1.0", "https://example.com/csv.wasm", "csv.wasm", ""]
        {
            assert_eq!(named(other), None, "{other}");
        }
        let one = json!([{"registryType": "npm", "identifier": "csv"}, oci("ghcr.io/acme/csv:1")]);
        let is_plugin = |packages: &Value| with_extension(&json!(true), packages);
        assert_eq!(is_plugin(&one).as_deref(), Some("oci://ghcr.io/acme/csv:1"));
        assert_eq!(is_plugin(&json!([])), None);
        assert_eq!(is_plugin(&json!([oci("ghcr.io/a/b:1"), oci("ghcr.io/a/c:1")])), None);
        assert_eq!(is_plugin(&json!([oci("acme/csv:1")])), None);
        for extension in [json!(false), json!(null), json!("true"), json!(["component"])] {
            assert_eq!(with_extension(&extension, &one), None, "{extension}");
        }
    }

    #[test]
    fn entries_that_cannot_be_used_are_left_out_and_strings_are_harmless() {
        let named = |name: &str| json!({"server": {"name": name, "version": "1"}});
        let page = parse(&json!([
            named("acme/\u{1b}[31mcsv\r\n"),
            named(&"x".repeat(10_000)),
            named("\u{7}\u{7}"),
            {"server": {"name": "acme/no-version"}},
            {"name": "acme/flat", "version": "1"},
            "csv", null, [],
        ]));
        let names: Vec<_> = page.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["acme/[31mcsv", &"x".repeat(200)]);
        assert_eq!(page.skipped, 6);
    }

    #[test]
    fn states_that_are_not_known_are_not_active() {
        for (meta, expected) in [
            (json!(null), ServerStatus::Active),
            (json!({OFFICIAL: {}}), ServerStatus::Active),
            (json!({OFFICIAL: {"status": "active"}}), ServerStatus::Active),
            (json!({OFFICIAL: {"status": "deleted"}}), ServerStatus::Deleted),
            (json!({OFFICIAL: {"status": "suspended"}}), ServerStatus::Unknown),
            (json!({OFFICIAL: {"status": 1}}), ServerStatus::Unknown),
        ] {
            assert_eq!(ServerStatus::of(&json!({"_meta": meta})), expected, "{meta}");
        }
    }

    #[test]
    fn limits_are_limits() {
        let list = |count: usize| json!({"servers": vec![Value::Null; count]}).to_string();
        let refused = CatalogPage::from_index(list(1_001).as_bytes());
        assert_eq!(refused, Err(CatalogError::TooMany { count: 1_001, max: 1_000 }));
        assert_eq!(CatalogPage::from_index(list(1_000).as_bytes()).unwrap().skipped, 1_000);
        let cursor = json!({"servers": null, "metadata": {"nextCursor": "x".repeat(1_025)}});
        let refused = CatalogPage::from_index(cursor.to_string().as_bytes());
        assert_eq!(refused, Err(CatalogError::Cursor));
        for other in ["{}", "[]", "null", r#"{"servers": {}}"#] {
            assert_eq!(CatalogPage::from_index(other.as_bytes()), Err(CatalogError::Shape));
        }
        for other in ["", "<html>", &"[".repeat(100_000)] {
            let refused = CatalogPage::from_index(other.as_bytes());
            assert!(matches!(refused, Err(CatalogError::Json(_))), "{refused:?}");
        }
    }

    /// JSON of any shape, with the names that the parser looks for.
    fn json_value() -> impl Strategy<Value = Value> {
        let names = [
            "server",
            "name",
            "version",
            "_meta",
            "packages",
            PUBLISHER_PROVIDED,
            EXTENSION,
            "component",
            "registryType",
            "identifier",
            OFFICIAL,
            "status",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "(oci)?(://)?\\PC{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, move |inner| {
            let key = proptest::sample::select(names.to_vec());
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..6).prop_map(|map| {
                    map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = CatalogPage::from_index(&bytes);
        }

        #[test]
        fn any_entries_are_read_or_left_out(entries in prop::collection::vec(json_value(), 0..8)) {
            let count = entries.len();
            let page = parse(&json!(entries));
            prop_assert_eq!(page.servers.len() + page.skipped, count);
            for server in &page.servers {
                prop_assert!(server.name.chars().count() <= 200);
                prop_assert!(!server.name.chars().any(char::is_control));
            }
        }
    }
}
