//! Debian's registry, with TLS and a login, and skopeo.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::{guest, unused_port};
use serde_json::Value;

use super::Folder;

/// Maximum time until the registry listens.
const START_MAX: Duration = Duration::from_secs(30);
/// `me` with the password `secret-password`.
const PASSWORDS: &str = "me:$2y$05$2.GMnM26zHbp5qpxaFyVPOc1ZlkEgAMON6jbHXT9/.lBJgqhqT/q6\n";

/// Running registry. It ends when it is dropped.
struct DebianRegistry {
    child: Child,
    host: String,
}

impl Drop for DebianRegistry {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl DebianRegistry {
    /// Starts a registry that stores its data in `folder`, and writes the certificate of its
    /// authority there.
    fn start(folder: &Path) -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("ca.pem"), certified.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
        std::fs::write(folder.join("passwords"), PASSWORDS).unwrap();
        let port = unused_port();
        let at = |name: &str| folder.join(name).display().to_string();
        let mut config = String::from("version: 0.1\nlog: {level: error}\n");
        writeln!(config, "storage: {{filesystem: {{rootdirectory: {:?}}}}}", at("data")).unwrap();
        writeln!(
            config,
            "http: {{addr: \"127.0.0.1:{port}\", tls: {{certificate: {:?}, key: {:?}}}}}",
            at("ca.pem"),
            at("key.pem")
        )
        .unwrap();
        writeln!(config, "auth: {{htpasswd: {{realm: test, path: {:?}}}}}", at("passwords"))
            .unwrap();
        std::fs::write(folder.join("registry.yml"), config).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(folder.join("registry.yml"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "the registry has ended");
            assert!(started.elapsed() < START_MAX, "the registry does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, host: format!("localhost:{port}") }
    }
}

/// Returns whether Debian's packages are installed. `cargo xtask test` installs them in CI.
fn is_installed() -> bool {
    let is_there = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let is_installed = is_there("docker-registry") && is_there("skopeo");
    assert!(is_installed || std::env::var_os("CI").is_none(), "docker-registry and skopeo");
    is_installed
}

fn config(host: &str) -> String {
    format!(
        "[[registry.trust]]\nfrom = \"{host}/*\"\nkeys = [\"acme.pub\"]\n\n[secrets]\nregistry = {{ file = \"password\" }}\n\n[registry]\nauthorities = \
         [\"ca.pem\"]\n\n[registry.logins.\"{host}\"]\nusername = \"me\"\npassword = \
         \"registry\"\n"
    )
}

#[test]
fn debians_registry_takes_and_returns_a_plugin_and_skopeo_copies_it() {
    if !is_installed() {
        return;
    }
    let folder = Folder::new();
    let registry = DebianRegistry::start(folder.0.path());
    let host = &registry.host;
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    std::fs::write(folder.path("password"), "secret-password").unwrap();
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(folder.path("password"), owner_only).unwrap();
    folder.done(&["keys", "new", "acme"]);
    let reference = format!("oci://{host}/acme/text:1.0");

    // Neither the authority nor the login is known without the configuration.
    let unknown = folder.refused(4, &["publish", "text.wasm", &reference]);
    assert!(unknown.contains("certificate"), "{unknown}");
    std::fs::write(folder.path("open.toml"), "[registry]\nauthorities = [\"ca.pem\"]\n").unwrap();
    let publish = ["publish", "text.wasm", &reference, "--json", "--config"];
    let denied = folder.refused(4, &[&publish[..], &["open.toml"]].concat());
    assert!(denied.contains("docker login"), "{denied}");

    std::fs::write(folder.path("tools.toml"), config(host)).unwrap();
    let published = folder.done(&[&publish[..], &["tools.toml", "--key", "acme.key"]].concat());
    let published: Value = serde_json::from_str(&published).unwrap();
    let config = ["--config", "tools.toml"];
    folder.done(&[&["add", &reference, "--yes"][..], &config].concat());
    let call = [&["call", "word_count", "text=a b"][..], &config].concat();
    assert!(folder.done(&call).starts_with("{\"words\":2,"));

    // Another program reads an exported copy, and the list of signatures in it.
    folder.done(&[&["export", "copy"][..], &config].concat());
    let inspect = |name: &str| {
        let mut inspect = Command::new("skopeo");
        let image = format!("oci:{}:{name}", folder.path("copy").display());
        let inspected = inspect.args(["inspect", "--raw", &image]).output().unwrap();
        serde_json::from_slice::<Value>(&inspected.stdout)
            .unwrap_or_else(|_| panic!("{image}: {}", String::from_utf8_lossy(&inspected.stderr)))
    };
    assert_eq!(
        inspect(&reference.replace("oci://", ""))["layers"][0]["mediaType"],
        "application/wasm"
    );
    let manifest = published["manifest"].as_str().unwrap();
    let signatures = inspect(&manifest.replace(':', "-"));
    assert_eq!(signatures["manifests"].as_array().unwrap().len(), 2, "{signatures}");

    // Copied by another program, to another name: the same manifest.
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--insecure-policy", "copy", "--src-creds", "me:secret-password"]);
    skopeo.args(["--src-cert-dir", &folder.path("certificates").display().to_string()]);
    skopeo.args(["--dest-cert-dir", &folder.path("certificates").display().to_string()]);
    skopeo.args(["--dest-creds", "me:secret-password"]);
    std::fs::create_dir(folder.path("certificates")).unwrap();
    std::fs::copy(folder.path("ca.pem"), folder.path("certificates/ca.crt")).unwrap();
    skopeo.arg(format!("docker://{host}/acme/text:1.0"));
    skopeo.arg(format!("docker://{host}/other/words:7"));
    let copied = skopeo.output().unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    // The signature is about the manifest, but skopeo leaves it behind.
    let copy = format!("oci://{host}/other/words:7");
    let unsigned = folder.refused(4, &[&["add", &copy, "--yes"][..], &config].concat());
    assert!(unsigned.contains("has no signature"), "{unsigned}");
    folder.done(&[&["sign", &copy, "--key", "acme.key"][..], &config].concat());
    folder.done(&[&["add", &copy, "--yes"][..], &config].concat());
    let lock: Value = serde_json::from_str(&folder.text("tools.lock")).unwrap();
    let manifest = |name: &str| lock["plugins"][name]["origin"]["manifest"].clone();
    assert_eq!(manifest("words"), published["manifest"]);
    assert_eq!(manifest("words"), manifest("text"));
}
