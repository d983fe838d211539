//! The client against a registry that behaves, and against one that attacks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_tool::permission::SecretText;

use crate::testing::{Reply, Request, TestRegistry};
use crate::{
    ArtifactStore, CredentialSource, Credentials, Digest, ManifestError, PullOptions,
    PulledArtifact, Reference, RegistryClient, RegistryError, RegistryErrorKind, RegistryMirror,
    RegistrySettings, SignatureBundle, SigningKey, StoreError, WasmArtifact,
};

const COMPONENT: &[u8] = b"\0asm component of the tests";
const BYTES_MAX: u64 = 1024 * 1024;

fn artifact(component: &[u8]) -> WasmArtifact {
    let component = Bytes::copy_from_slice(component);
    WasmArtifact::new(component, &[], &[], &BTreeMap::new()).unwrap()
}

struct Fixture {
    registry: TestRegistry,
    store: ArtifactStore,
    _directory: tempfile::TempDir,
}

impl Fixture {
    /// Starts a registry with `acme/csv:1`.
    async fn new() -> Self {
        let registry = TestRegistry::start().await.unwrap();
        registry.add("acme/csv", "1", &artifact(COMPONENT));
        let directory = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open_ambient(directory.path()).unwrap();
        Self { registry, store, _directory: directory }
    }

    fn reference(&self) -> Reference {
        self.registry.reference("acme/csv:1").parse().unwrap()
    }

    async fn pull_with(
        &self,
        settings: RegistrySettings,
        reference: &Reference,
    ) -> Result<PulledArtifact, RegistryError> {
        let client = RegistryClient::new(settings).unwrap();
        let manifest = client.manifest(reference).await?;
        let options = PullOptions { bytes_max: BYTES_MAX, progress: &|_, _| {} };
        client.pull(reference, manifest, &self.store, options).await
    }

    async fn pull(&self) -> Result<PulledArtifact, RegistryError> {
        self.pull_with(RegistrySettings::default(), &self.reference()).await
    }

    /// Pulls and returns the cause of the error. Nothing may be in the store.
    async fn refusal(&self) -> RegistryErrorKind {
        let error = self.pull().await.unwrap_err();
        assert_eq!(error.registry, self.registry.host());
        assert!(!self.store.contains(Digest::of(COMPONENT), 27), "{error}");
        *error.kind
    }

    /// Answers requests whose path contains `part` with `reply`.
    fn answer(&self, part: &'static str, reply: Reply) {
        self.registry.intercept(move |request| request.path.contains(part).then(|| reply.clone()));
    }
}

struct Login;

#[async_trait]
impl CredentialSource for Login {
    async fn credentials(&self, _: &str) -> Result<Option<Credentials>, String> {
        let password = SecretText::new("secret");
        Ok(Some(Credentials::Password { username: "user".to_owned(), password }))
    }
}

fn with_login() -> RegistrySettings {
    RegistrySettings { credentials: Some(Arc::new(Login)), ..RegistrySettings::default() }
}

#[tokio::test]
async fn an_artifact_is_pushed_and_pulled_once() {
    let fixture = Fixture::new().await;
    let reference = fixture.reference().with_tag("2").unwrap();
    let client = RegistryClient::new(RegistrySettings::default()).unwrap();
    let pushed = client.push(&reference, &artifact(b"\0asm other")).await.unwrap();
    assert_eq!(fixture.registry.tag("acme/csv", "2"), Some(pushed));
    for expected_blobs in [2, 0] {
        let _ = fixture.registry.take_requests();
        let pulled = fixture.pull_with(RegistrySettings::default(), &reference).await.unwrap();
        assert_eq!(pulled.manifest.digest, pushed);
        let content = fixture.store.read(pulled.component.digest, BYTES_MAX).unwrap().unwrap();
        assert_eq!(content, b"\0asm other");
        let requests = fixture.registry.take_requests();
        let blobs = requests.iter().filter(|request| request.path.contains("/blobs/")).count();
        assert_eq!(blobs, expected_blobs);
    }
    let pinned = fixture.reference().with_digest(pushed);
    fixture.pull_with(RegistrySettings::default(), &pinned).await.unwrap();
}

#[tokio::test]
async fn a_login_gets_one_token_for_all_requests() {
    let fixture = Fixture::new().await;
    fixture.registry.require_login("user", "secret", None);
    let error = fixture.pull().await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::Unauthorized(_)), "{error}");
    let _ = fixture.registry.take_requests();
    fixture.pull_with(with_login(), &fixture.reference()).await.unwrap();
    let requests = fixture.registry.take_requests();
    let tokens = requests.iter().filter(|request| request.path.starts_with("/token")).count();
    assert_eq!(tokens, 1, "{requests:?}");
}

#[tokio::test]
async fn credentials_are_not_sent_to_the_server_that_a_registry_names() {
    let fixture = Fixture::new().await;
    let other = TestRegistry::start().await.unwrap();
    let realm = format!("http://{}/token", other.host());
    fixture.registry.require_login("user", "secret", Some(realm));
    let error = fixture.pull_with(with_login(), &fixture.reference()).await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::ForeignHost(_)), "{error}");
    assert!(other.take_requests().is_empty());
    // Without credentials, an address that is private or not encrypted is not contacted either.
    for realm in ["http://169.254.169.254/token", "https://10.0.0.1/token", "https://[::1]:1/token"]
    {
        fixture.registry.require_login("user", "secret", Some(realm.to_owned()));
        let error = fixture.pull().await.unwrap_err();
        let is_refused = match *error.kind {
            RegistryErrorKind::ForeignHost(_) => true,
            // A registry on this machine may refer to this machine.
            RegistryErrorKind::Connection(_) => realm.contains("::1"),
            _ => false,
        };
        assert!(is_refused, "{realm}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_gets_no_credentials_and_no_private_address() {
    let fixture = Fixture::new().await;
    fixture.registry.require_login("user", "secret", None);
    for target in ["http://127.0.0.1:9/x", "http://169.254.169.254/x", "https://192.168.0.1/x"] {
        let reply = Reply::new(307, "").with_header("location", target);
        fixture.answer("/blobs/", reply);
        let error = fixture.pull_with(with_login(), &fixture.reference()).await.unwrap_err();
        assert!(matches!(*error.kind, RegistryErrorKind::ForeignHost(_)), "{target}: {error}");
    }
    fixture.answer("/blobs/", Reply::new(307, "").with_header("location", "/v2/x/blobs/y"));
    let error = fixture.pull_with(with_login(), &fixture.reference()).await.unwrap_err();
    assert!(error.to_string().contains("more than 3 redirects"), "{error}");
    fixture.answer("/blobs/", Reply::new(307, "").with_header("location", "http://["));
    let error = fixture.pull_with(with_login(), &fixture.reference()).await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::Malformed(_)), "{error}");
}

#[tokio::test]
async fn a_redirect_to_the_same_registry_is_followed() {
    let fixture = Fixture::new().await;
    let digest = fixture.registry.add_blob(COMPONENT);
    fixture.registry.intercept(move |request| {
        let is_first = request.path.ends_with(&format!("/acme/csv/blobs/{digest}"));
        let target = format!("/v2/elsewhere/blobs/{digest}");
        is_first.then(|| Reply::new(307, "").with_header("location", target))
    });
    fixture.pull().await.unwrap();
}

#[tokio::test]
async fn other_bytes_than_the_digest_says_are_refused() {
    let fixture = Fixture::new().await;
    fixture.answer("/blobs/", Reply::new(200, b"\0asm Component of the tests".to_vec()));
    let kind = fixture.refusal().await;
    assert!(matches!(kind, RegistryErrorKind::Store(StoreError::Digest { .. })), "{kind}");
    fixture.answer("/blobs/", Reply::new(200, vec![0; 28]));
    assert!(matches!(fixture.refusal().await, RegistryErrorKind::TooLarge(_)));
    fixture.answer("/blobs/", Reply::endless());
    let kind = fixture.refusal().await;
    assert!(matches!(kind, RegistryErrorKind::Store(StoreError::Size { .. })), "{kind}");
    let other = artifact(b"\0asm other").manifest;
    fixture.answer("/manifests/", Reply::new(200, other.clone()));
    let pinned = fixture.reference().with_digest(artifact(COMPONENT).digest());
    let error = fixture.pull_with(RegistrySettings::default(), &pinned).await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::ManifestDigest { .. }), "{error}");
    let reply = Reply::new(200, other);
    let reply = reply.with_header("docker-content-digest", Digest::of(b"x").to_string());
    fixture.answer("/manifests/", reply);
    assert!(matches!(fixture.refusal().await, RegistryErrorKind::ManifestDigest { .. }));
}

#[tokio::test]
async fn manifests_are_limited_and_strict() {
    let fixture = Fixture::new().await;
    fixture.answer("/manifests/", Reply::endless());
    assert!(matches!(fixture.refusal().await, RegistryErrorKind::TooLarge(_)));
    fixture.answer("/manifests/", Reply::new(200, vec![b'x'; 4 * 1024 * 1024 + 1]));
    assert!(matches!(fixture.refusal().await, RegistryErrorKind::TooLarge(_)));
    for invalid in ["", "[]", "{\"schemaVersion\":2}", "\u{0}", &"[".repeat(100_000)] {
        fixture.answer("/manifests/", Reply::new(200, invalid));
        let kind = fixture.refusal().await;
        assert!(matches!(kind, RegistryErrorKind::Manifest(_)), "{kind}");
    }
    // Weaker and optional digests do not identify a component.
    let text = String::from_utf8(artifact(COMPONENT).manifest).unwrap();
    for algorithm in ["sha512:", "md5:", ""] {
        fixture.answer("/manifests/", Reply::new(200, text.replace("sha256:", algorithm)));
        let kind = fixture.refusal().await;
        assert!(matches!(kind, RegistryErrorKind::Manifest(_)), "{kind}");
    }
    let large = text.replace("\"size\":27", "\"size\":18446744073709551615");
    fixture.answer("/manifests/", Reply::new(200, large));
    assert!(matches!(fixture.refusal().await, RegistryErrorKind::ComponentSize { .. }));
    // An index that leads to an index.
    let entry = |digest: Digest| {
        format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"x/y","digest":"{digest}","size":1}}]}}"#
        )
    };
    let inner = entry(Digest::of(b"x"));
    fixture.registry.intercept(|_| None);
    fixture.registry.add_manifest("acme/csv", "inner", inner.as_bytes());
    let outer = entry(Digest::of(inner.as_bytes()));
    fixture.registry.add_manifest("acme/csv", "1", outer.as_bytes());
    let kind = fixture.refusal().await;
    assert!(matches!(kind, RegistryErrorKind::Manifest(ManifestError::Nested)), "{kind}");
}

#[tokio::test]
async fn a_broken_download_continues_where_it_ended() {
    let fixture = Fixture::new().await;
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    fixture.registry.intercept(move |request| {
        let is_layer = request.path.ends_with(&Digest::of(COMPONENT).to_string());
        let is_first = is_layer && counted.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then(|| Reply::cut(&COMPONENT[..10], COMPONENT.len()))
    });
    fixture.pull().await.unwrap();
    let requests = fixture.registry.take_requests();
    let ranges: Vec<_> = requests.iter().filter_map(|it| it.headers.get("range")).collect();
    assert_eq!(ranges, ["bytes=10-"]);
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_download_that_always_breaks_ends() {
    let fixture = Fixture::new().await;
    fixture.answer("/blobs/", Reply::cut(&COMPONENT[..10], COMPONENT.len()));
    assert!(matches!(fixture.refusal().await, RegistryErrorKind::Connection(_)));
}

#[tokio::test]
async fn errors_name_the_registry_the_step_and_what_it_said() {
    let fixture = Fixture::new().await;
    let host = fixture.registry.host();
    let reference = fixture.reference().with_tag("none").unwrap();
    let error = fixture.pull_with(RegistrySettings::default(), &reference).await.unwrap_err();
    let expected = format!("{host}: reading the manifest of acme/csv:none: not found (HTTP 404)");
    assert_eq!(error.to_string(), expected);
    let body = format!(
        "{{\"errors\":[{{\"code\":\"TOOMANYREQUESTS\",\"message\":\"\\u001b[2J{}\"}}]}}",
        "slow ".repeat(1000)
    );
    fixture.answer("/manifests/", Reply::new(429, body));
    let error = fixture.pull().await.unwrap_err().to_string();
    assert!(error.contains("HTTP 429: TOOMANYREQUESTS [2Jslow slow"), "{error}");
    assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
    let address = fixture.registry.host();
    drop(fixture);
    let client = RegistryClient::new(RegistrySettings::default()).unwrap();
    let gone: Reference = format!("oci://{address}/acme/csv:1").parse().unwrap();
    let error = client.manifest(&gone).await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::Connection(_)), "{error}");
}

async fn signed(fixture: &Fixture) -> (SignatureBundle, Digest) {
    let client = RegistryClient::new(RegistrySettings::default()).unwrap();
    let manifest = client.manifest(&fixture.reference()).await.unwrap();
    let (key, _) = SigningKey::generate().unwrap();
    let signature = SignatureBundle::sign(manifest.digest, &key).unwrap();
    client.push_signature(&fixture.reference(), &manifest, &signature).await.unwrap();
    (signature, manifest.digest)
}

async fn signatures(fixture: &Fixture) -> Result<Vec<SignatureBundle>, RegistryError> {
    let client = RegistryClient::new(RegistrySettings::default()).unwrap();
    let digest = artifact(COMPONENT).digest();
    client.signatures(&fixture.reference(), digest).await
}

#[tokio::test]
async fn signatures_are_listed_with_and_without_the_referrers_api() {
    for lists_referrers in [true, false] {
        let fixture = Fixture::new().await;
        if lists_referrers {
            fixture.registry.list_referrers();
        }
        assert_eq!(signatures(&fixture).await.unwrap(), []);
        let (first, digest) = signed(&fixture).await;
        let (second, _) = signed(&fixture).await;
        let found = signatures(&fixture).await.unwrap();
        assert!(found.contains(&first) && found.contains(&second) && found.len() == 2);
        let tag = digest.to_string().replace(':', "-");
        assert_eq!(fixture.registry.tag("acme/csv", &tag).is_none(), lists_referrers);
    }
}

#[tokio::test]
async fn a_readme_refers_to_its_plugin_with_and_without_the_referrers_api() {
    for lists_referrers in [true, false] {
        let fixture = Fixture::new().await;
        if lists_referrers {
            fixture.registry.list_referrers();
        }
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        let reference = fixture.reference();
        let manifest = client.manifest(&reference).await.unwrap();
        let readme = async || client.readme(&reference, manifest.digest).await.unwrap();
        assert_eq!(readme().await, None);
        client.push_readme(&reference, &manifest, "# CSV\n").await.unwrap();
        client.push_readme(&reference, &manifest, "# CSV\n").await.unwrap();
        let (signature, digest) = signed(&fixture).await;
        assert_eq!(readme().await.as_deref(), Some("# CSV\n"));
        assert_eq!(signatures(&fixture).await.unwrap(), [signature], "a README is no signature");
        if lists_referrers {
            continue;
        }
        // The index has the newest one only, and the manifest of the plugin is as it was.
        client.push_readme(&reference, &manifest, "# New\n").await.unwrap();
        assert_eq!(readme().await.as_deref(), Some("# New\n"));
        client.push_readme(&reference, &manifest, "# CSV\n").await.unwrap();
        assert_eq!(readme().await.as_deref(), Some("# CSV\n"));
        assert_eq!(client.manifest(&reference).await.unwrap().digest, digest);
        let large = "x".repeat(1024 * 1024 + 1);
        let error = client.push_readme(&reference, &manifest, &large).await.unwrap_err();
        assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
    }
}

#[tokio::test]
async fn a_readme_that_is_no_text_or_of_another_plugin_is_passed_over() {
    let fixture = Fixture::new().await;
    let client = RegistryClient::new(RegistrySettings::default()).unwrap();
    let manifest = client.manifest(&fixture.reference()).await.unwrap();
    client.push_readme(&fixture.reference(), &manifest, "text").await.unwrap();
    let other = Digest::of(b"another manifest");
    assert_eq!(client.readme(&fixture.reference(), other).await.unwrap(), None);
    let readme = async || client.readme(&fixture.reference(), manifest.digest).await;
    fixture.answer("/manifests/sha256-", Reply::new(503, ""));
    let error = readme().await.unwrap_err();
    assert!(error.step.starts_with("reading the README of acme/csv@"), "{error}");
    let content = Digest::of(b"text");
    fixture.registry.intercept(move |request| {
        request.path.ends_with(&content.to_string()).then(|| Reply::new(200, "texts"))
    });
    let error = readme().await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::TooLarge(4)), "{error}");
    fixture.registry.intercept(move |request| {
        request.path.ends_with(&content.to_string()).then(|| Reply::new(404, ""))
    });
    assert_eq!(readme().await.unwrap(), None);
}

#[tokio::test]
async fn a_registry_that_fails_is_not_a_registry_without_signatures() {
    for (part, reply) in [
        ("/referrers/", Reply::new(500, "")),
        ("/referrers/", Reply::new(200, "<html>")),
        ("/referrers/", Reply::endless()),
        ("/manifests/sha256-", Reply::new(503, "")),
        ("/manifests/sha256-", Reply::new(200, artifact(COMPONENT).manifest)),
    ] {
        let fixture = Fixture::new().await;
        signed(&fixture).await;
        fixture.answer(part, reply);
        let error = signatures(&fixture).await.unwrap_err();
        assert!(error.step.starts_with("reading the signatures of acme/csv@"), "{error}");
    }
}

#[tokio::test]
async fn lists_that_do_not_end_and_other_bytes_are_errors() {
    let fixture = Fixture::new().await;
    signed(&fixture).await;
    let page = r#"{"schemaVersion":2,"manifests":[]}"#;
    let endless =
        Reply::new(200, page).with_header("link", "</v2/acme/csv/referrers/x>; rel=\"next\"");
    fixture.answer("/referrers/", endless);
    let error = signatures(&fixture).await.unwrap_err();
    assert!(error.to_string().contains("more than 8 pages"), "{error}");

    let entry = |n: usize| serde_json::json!(crate::Descriptor::of("a/b", &n.to_le_bytes()));
    let many: Vec<_> = (0..65).map(entry).collect();
    let list = serde_json::json!({"schemaVersion": 2, "manifests": many}).to_string();
    fixture.answer("/referrers/", Reply::new(200, list));
    let error = signatures(&fixture).await.unwrap_err();
    assert!(error.to_string().contains("more than 64 signatures"), "{error}");

    let bundles = move |request: &Request| {
        let is_blob = request.path.contains("/blobs/") && request.method == "GET";
        is_blob.then(|| Reply::new(200, "{}"))
    };
    fixture.registry.intercept(bundles);
    let error = signatures(&fixture).await.unwrap_err();
    assert!(matches!(*error.kind, RegistryErrorKind::ManifestDigest { .. }), "{error}");
}

#[tokio::test]
async fn a_mirror_has_contents_and_the_registry_has_the_tags() {
    let fixture = Fixture::new().await;
    let mirror = TestRegistry::start().await.unwrap();
    let settings = || RegistrySettings {
        mirrors: vec![RegistryMirror {
            of: format!("{}/*", fixture.registry.host()).parse().unwrap(),
            at: format!("{}/copies", mirror.host()),
        }],
        ..RegistrySettings::default()
    };
    // A tag of the mirror names something else.
    mirror.add("copies/acme/csv", "1", &artifact(b"\0asm of the mirror"));
    for (content, from_registry) in
        [(None, 1), (Some(&b"other bytes"[..]), 1), (Some(COMPONENT), 0)]
    {
        let digest = Digest::of(COMPONENT);
        let _ = std::fs::remove_file(fixture.store.path(digest));
        let content = content.map(<[u8]>::to_vec);
        mirror.intercept(move |request| {
            let content = content.clone().filter(|_| request.path.ends_with(&digest.to_string()));
            content.map(|content| Reply::new(200, content))
        });
        let _ = fixture.registry.take_requests();
        let pulled = fixture.pull_with(settings(), &fixture.reference()).await.unwrap();
        assert_eq!(pulled.component.digest, digest);
        assert_eq!(fixture.store.read(digest, BYTES_MAX).unwrap().unwrap(), COMPONENT);
        let requests = fixture.registry.take_requests();
        let layers = requests.iter().filter(|it| it.path.ends_with(&digest.to_string()));
        assert_eq!(layers.count(), from_registry, "{requests:?}");
    }
    let requests = mirror.take_requests();
    assert!(requests.iter().all(|it| !it.path.contains("/manifests/")), "{requests:?}");
}
