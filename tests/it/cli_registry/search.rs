//! Searches in index files and registries, and the listing of a published plugin.

use cofferdam_registry::testing::{Reply, Request};
use cofferdam_registry::{Digest, Reference, RegistryClient, RegistrySettings};
use cofferdam_tests::guest;
use serde_json::{Value, json};

use super::{Folder, Registry, UNSIGNED};

/// Members of `_meta` in the MCP registry.
const PUBLISHER: &str = "io.modelcontextprotocol.registry/publisher-provided";
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
const ANNOTATION: &str = "io.modelcontextprotocol.server.name";

/// Returns the reference of a component that does not exist.
fn component(name: &str) -> String {
    format!("oci://ghcr.io/acme/{name}:1.0@{}", Digest::of(name.as_bytes()))
}

/// Returns the entry of a plugin.
fn plugin(name: &str, description: &str, status: &str) -> Value {
    json!({
        "server": {
            "name": format!("io.github.acme/{name}"), "version": "1.0", "description": description,
            "_meta": {PUBLISHER: {"cofferdam": {"component": component(name)}}},
        },
        "_meta": {OFFICIAL: {"status": status}},
    })
}

/// Returns the entry of a server that is not a plugin.
fn server(name: &str) -> Value {
    json!({"server": {
        "name": name, "version": "3.1", "description": "A server",
        "packages": [{"registryType": "npm", "identifier": "server"}],
        "remotes": [{"type": "sse", "url": "https://a.example/"}],
    }})
}

fn page(servers: &[Value], cursor: Option<&str>) -> String {
    json!({"servers": servers, "metadata": {"nextCursor": cursor}}).to_string()
}

fn write_index(folder: &Folder, name: &str, servers: &[Value]) {
    std::fs::write(folder.path(name), page(servers, None)).unwrap();
}

#[test]
fn an_index_file_is_searched_by_name_and_description() {
    let folder = Folder::new();
    let servers = [
        server("a.example/csv"),
        plugin("tables", "Reads CSV and TSV", "active"),
        plugin("csv", "Reads files", "active"),
        plugin("old-csv", "Reads files", "deprecated"),
        plugin("text", "Counts words", "active"),
    ];
    write_index(&folder, "plugins.json", &servers);
    let search = ["search", "Csv", "--index", "plugins.json"];
    let found = folder.done(&search);
    let (csv, tables) = (component("csv"), component("tables"));
    let expected = format!(
        "io.github.acme/csv  1.0\n  Reads files\n  {csv}\nio.github.acme/tables  1.0\n  Reads CSV \
         and TSV\n  {tables}\n"
    );
    assert_eq!(found, expected);

    let all = folder.done(&[&search[..], &["--all"]].concat());
    let old = format!("old-csv  1.0  (deprecated)\n  Reads files\n  {}\n", component("old-csv"));
    assert!(all.contains(&old), "{all}");
    assert!(all.ends_with("a.example/csv  3.1  (npm, remote)\n  A server\n"), "{all}");

    let first = folder.run(&[&search[..], &["--limit", "1"]].concat());
    assert!(!first.stdout.contains("tables"), "{}", first.stdout);
    assert!(first.stderr.contains("1 more with a higher --limit"), "{}", first.stderr);
    let shown = folder.done(&[&search[..], &["--json", "--limit", "1"]].concat());
    let expected = json!([{
        "name": "io.github.acme/csv", "version": "1.0", "description": "Reads files",
        "status": "active", "component": csv, "packages": [], "is_remote": false,
    }]);
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), expected);

    let nothing = folder.run(&["search", "nothing", "--index", "plugins.json"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, ""), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("nothing was found"), "{}", nothing.stderr);
    let others = folder.run(&["search", "a.example", "--index", "plugins.json"]);
    let note = "no plugin was found; 1 other server with --all";
    assert!(others.code == 0 && others.stderr.contains(note), "{}", others.stderr);
}

#[test]
fn a_configuration_names_indexes_relative_to_itself() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("tools")).unwrap();
    write_index(&folder, "tools/plugins.json", &[plugin("csv", "Reads files", "active")]);
    write_index(&folder, "other.json", &[plugin("csv2", "Reads files", "active")]);
    let config = |indexes: &str| {
        let config = format!("[registry]\nindexes = [{indexes}]\n");
        std::fs::write(folder.path("tools/tools.toml"), config).unwrap();
    };
    config("\"plugins.json\"");
    let search = ["search", "csv", "--config", "tools/tools.toml"];
    assert!(folder.done(&search).starts_with("io.github.acme/csv  1.0\n"));
    // Flags are instead of the configuration.
    let named = folder.done(&[&search[..], &["--index", "other.json"]].concat());
    assert!(named.starts_with("io.github.acme/csv2  1.0\n"), "{named}");
    config("\"plugins.json\", \"http://registry.example/\"");
    let invalid = folder.refused(2, &search);
    assert!(invalid.contains("tools.toml:2"), "{invalid}");
    let message =
        "`http://registry.example/` is not an index of plugins: expected the https address";
    assert!(invalid.contains(message), "{invalid}");
    let invalid = folder.refused(2, &["search", "csv", "--index", "http://registry.example/"]);
    assert!(invalid.contains(message), "{invalid}");
}

#[test]
fn a_registry_is_searched_page_by_page_without_a_login() {
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::create_dir_all(folder.path("home/.docker")).unwrap();
    let host = registry.inner.host();
    let logins = json!({"auths": {&host: {"auth": "bWU6c2VjcmV0"}}}).to_string();
    std::fs::write(folder.path("home/.docker/config.json"), logins).unwrap();
    registry.inner.intercept(|request| {
        Some(match request.path.contains("cursor=next") {
            false => Reply::new(200, page(&[server("a.example/csv")], Some("next"))),
            true => Reply::new(200, page(&[plugin("csv", "Reads files", "active")], None)),
        })
    });
    let index = format!("http://{host}");
    let found = folder.done(&["search", "csv", "--index", &index]);
    assert_eq!(found, format!("io.github.acme/csv  1.0\n  Reads files\n  {}\n", component("csv")));
    let requests = registry.inner.take_requests();
    let paths: Vec<_> = requests.iter().map(|request| request.path.as_str()).collect();
    let first = "/v0.1/servers?search=csv&version=latest&limit=100";
    assert_eq!(paths, [first, &format!("{first}&cursor=next")]);
    let has_login = |request: &Request| request.headers.contains_key("authorization");
    assert!(!requests.iter().any(has_login), "{requests:?}");
}

#[test]
fn a_registry_cannot_harm_a_search() {
    let (registry, folder) = (Registry::start(), Folder::new());
    let index = format!("http://{}", registry.inner.host());
    let search = ["search", "csv", "--index", &index];
    for (reply, message) in [
        (Reply::endless(), "the response is larger than 4194304 bytes"),
        (Reply::new(200, "<html>"), "invalid response: expected JSON"),
        (Reply::new(200, "[1]"), "expected an object with the array `servers`"),
        (Reply::new(200, "[".repeat(1_000_000)), "invalid response: expected JSON"),
        (Reply::new(200, page(&vec![Value::Null; 101], None)), "it lists 101 servers"),
        (Reply::cut("{\"servers\"", 100), "no connection"),
        (Reply::new(503, ""), "HTTP 503"),
        (Reply::new(302, "").with_header("location", "https://169.254.0.1/"), "public address"),
    ] {
        registry.inner.intercept(move |_| Some(reply.clone()));
        let refused = folder.refused(4, &search);
        assert!(refused.contains(message), "{message}: {refused}");
    }

    // One index that fails leaves the others.
    write_index(&folder, "plugins.json", &[plugin("csv", "Reads files", "active")]);
    let both = folder.run(&[&search[..], &["--index", "plugins.json"]].concat());
    assert_eq!(both.code, 0, "{}", both.stderr);
    assert!(both.stdout.starts_with("io.github.acme/csv  1.0\n"), "{}", both.stdout);
    assert!(both.stderr.contains("error: 127.0.0.1: reading /v0.1/servers"), "{}", both.stderr);
    let missing = folder.refused(4, &["search", "csv", "--index", "missing.json"]);
    assert!(missing.contains("missing.json cannot be read"), "{missing}");

    // A list without an end, with names that are not for a terminal.
    let mut hostile = plugin("csv", "a\r\nb", "active");
    hostile["server"]["name"] = json!("acme/csv\u{1b}]0;title\u{7}\n\u{9b}31m");
    let servers = [hostile, json!("entry")];
    registry.inner.intercept(move |_| Some(Reply::new(200, page(&servers, Some("again")))));
    let _ = registry.requests();
    let found = folder.run(&search);
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(registry.requests(), 10);
    assert!(found.stdout.starts_with("acme/csv]0;title31m  1.0\n  ab\n"));
    assert_eq!(found.stdout.matches("title").count(), 1, "{}", found.stdout);
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!found.stdout.contains(is_control), "{:?}", found.stdout);
    for note in ["has more results than are read", "10 servers without a name or a version"] {
        assert!(found.stderr.contains(note), "{note}: {}", found.stderr);
    }
}

#[test]
fn a_published_plugin_is_listed_found_and_added() {
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    std::fs::write(folder.path("words.mcpb"), "a bundle").unwrap();
    let reference = registry.reference("acme/words:2.0");
    let address = "https://github.com/acme/words/releases/download/v2.0/words.mcpb";
    let publish = ["publish", "text.wasm", &reference, "--server-name", "io.github.acme/words"];
    let described = [&publish[..], &["--description", "Counts words"]].concat();
    let source = ["--source", "https://github.com/acme/words"];
    let bundle = ["--bundle", "words.mcpb", "--bundle-url", address];
    let published = folder.run(&[&described[..], &source, &bundle].concat());
    assert_eq!(published.code, 0, "{}", published.stderr);
    let pinned = published.stdout.trim();
    for note in ["server.json is written", "does not list plugins at 127.0.0.1:"] {
        assert!(published.stderr.contains(note), "{note}: {}", published.stderr);
    }
    let listed: Value = serde_json::from_str(&folder.text("server.json")).unwrap();
    let schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
    let stdio = json!({"type": "stdio"});
    let expected = json!({
        "$schema": schema,
        "name": "io.github.acme/words",
        "description": "Counts words",
        "version": "2.0",
        "repository": {"url": "https://github.com/acme/words", "source": "github"},
        "packages": [
            {"registryType": "oci", "identifier": reference.trim_start_matches("oci://"),
             "runtimeHint": "cofferdam", "transport": stdio},
            {"registryType": "mcpb", "identifier": address,
             "fileSha256": Digest::of(b"a bundle").hex(), "transport": stdio},
        ],
        "_meta": {PUBLISHER: {"cofferdam": {"component": pinned}}},
    });
    assert_eq!(listed, expected);
    let annotations = registry.runtime.block_on(async {
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        let reference: Reference = pinned.parse().unwrap();
        client.manifest(&reference).await.unwrap().annotations
    });
    assert_eq!(annotations.get(ANNOTATION).map(String::as_str), Some("io.github.acme/words"));

    // The listing of the same server is replaced.
    let again = folder.done(&described);
    let replaced: Value = serde_json::from_str(&folder.text("server.json")).unwrap();
    assert_eq!(replaced["_meta"][PUBLISHER]["cofferdam"]["component"], again.trim());
    assert_eq!(replaced.get("repository"), None);

    write_index(&folder, "plugins.json", &[json!({"server": listed})]);
    let found = folder.done(&["search", "words", "--index", "plugins.json"]);
    let printed = found.lines().last().unwrap().trim();
    assert_eq!(printed, pinned);
    folder.done(&["add", printed, "--yes", UNSIGNED]);
    folder.counts_words();
}

#[test]
fn a_listing_is_checked_before_anything_is_published() {
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    std::fs::write(folder.path("words.mcpb"), "a bundle").unwrap();
    std::fs::write(folder.path("other.json"), "{\"name\": \"io.github.acme/other\"}").unwrap();
    std::fs::write(folder.path("notes.json"), "my notes").unwrap();
    let long = "x".repeat(101);
    let about = ["--description", "Counts words"];
    let bundle = |address: &'static str| ["--bundle", "words.mcpb", "--bundle-url", address];
    for (tag, name, more, message) in [
        ("1.0", "words", &about[..], "is not the name of a server: expected NAMESPACE/NAME"),
        ("1.0", "acme/words", &[], "wants a description; pass --description TEXT"),
        ("1.0", "acme/words", &["--description", &long], "has 101 characters"),
        ("latest", "acme/words", &about, "`latest` is not a version for the MCP registry"),
        ("1.x", "acme/words", &about, "`1.x` is not a version for the MCP registry"),
        (
            "1.0",
            "acme/words",
            &[&about[..], &["--server-json", "other.json"]].concat(),
            "other.json exists and is not the listing of acme/words",
        ),
        (
            "1.0",
            "acme/words",
            &[&about[..], &["--server-json", "notes.json"]].concat(),
            "notes.json exists and is not the listing of acme/words",
        ),
        (
            "1.0",
            "acme/words",
            &[&about[..], &["--server-json", "missing/server.json"]].concat(),
            "missing is not a directory",
        ),
        (
            "1.0",
            "acme/words",
            &[&about[..], &bundle("http://github.com/words.mcpb")].concat(),
            "is not the address of a bundle for the MCP registry",
        ),
    ] {
        let reference = registry.reference(&format!("acme/words:{tag}"));
        let publish = ["publish", "text.wasm", &reference, "--server-name", name];
        let refused = folder.refused(2, &[&publish[..], more].concat());
        assert!(refused.contains(message), "{message}: {refused}");
        assert_eq!(registry.inner.tag("acme/words", tag), None);
    }
    assert!(!folder.path("server.json").exists());
    assert_eq!(folder.text("notes.json"), "my notes");
    assert_eq!(registry.requests(), 0);
}
