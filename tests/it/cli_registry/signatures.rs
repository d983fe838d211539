//! Signatures of plugins: rules, keys, identities, statements.

use cofferdam_registry::testing::Reply;
use cofferdam_tests::{guest, root};
use serde_json::Value;

use super::{Folder, Registry, UNSIGNED};

#[test]
fn rules_say_who_must_have_signed_a_plugin() {
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    folder.done(&["keys", "new", "acme"]);
    folder.done(&["keys", "new", "evil"]);
    let again = folder.refused(2, &["keys", "new", "acme"]);
    assert!(again.contains("acme.key cannot be created"), "{again}");
    let host = registry.inner.host();
    let rule =
        |key: &str| format!("[[registry.trust]]\nfrom = \"{host}/acme/*\"\nkeys = [\"{key}\"]\n");
    std::fs::write(folder.path("tools.toml"), rule("acme.pub")).unwrap();
    let config = ["--config", "tools.toml"];
    let reference = registry.reference("acme/text:1.0");
    let with = |arguments: &[&str]| [arguments, &config].concat().join(" ");
    let split = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let done = |line: &str| {
        let words = split(line);
        folder.done(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let refused = |line: &str| {
        let words = split(line);
        folder.refused(4, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };

    // A rule cannot be switched off by a flag.
    let add = with(&["add", &reference, "--yes", UNSIGNED]);
    folder.done(&["publish", "text.wasm", &reference]);
    let unsigned = refused(&add);
    assert!(unsigned.contains("has no signature; expected one by the key sha256:"), "{unsigned}");
    let by_rule = format!("the rule for `{host}/acme/*` requires it");
    assert!(unsigned.contains(&by_rule), "{unsigned}");
    let flags_only = folder.refused(4, &["verify", &reference, "--key", "acme.pub"]);
    assert!(flags_only.contains("has no signature; expected one by the key"), "{flags_only}");
    assert!(!flags_only.contains("rule"), "{flags_only}");
    folder.done(&["sign", &reference, "--key", "evil.key"]);
    let other = refused(&add);
    assert!(other.contains("its signature is not by the key sha256:"), "{other}");
    assert_eq!(folder.stored(), Vec::<String>::new(), "nothing is downloaded before");
    let verified = folder.done(&["verify", &reference, "--key", "evil.pub"]);
    assert!(verified.contains("signed by the key sha256:"), "{verified}");
    folder.done(&["publish", "text.wasm", &reference, "--key", "acme.key"]);
    let added = done(&add);
    assert!(added.contains("signer     the key sha256:"), "{added}");
    let lock: Value = serde_json::from_str(&folder.text("tools.lock")).unwrap();
    let signer = lock["plugins"]["text"]["origin"]["signer"]["key"].clone();
    let verified = done(&with(&["verify", &reference, "--json"]));
    assert!(verified.contains(signer.as_str().unwrap()), "{verified}");

    // A registry that fails is not one without signatures.
    registry.inner.intercept(|request| {
        request.path.contains("/manifests/sha256-").then(|| Reply::new(503, ""))
    });
    let unknown = refused(&with(&["verify", &reference]));
    assert!(unknown.contains("it is not known who signed"), "{unknown}");
    registry.inner.intercept(|_| None);

    // A rule about statements takes those of its signers only.
    let text = folder.text("tools.toml");
    let attested = text.replace("keys =", "attested = [\"cyclonedx\"]\nkeys =");
    std::fs::write(folder.path("tools.toml"), attested).unwrap();
    std::fs::write(folder.path("bom.json"), "{\"bomFormat\":\"CycloneDX\"}").unwrap();
    let call = with(&["call", "word_count", "text=a"]);
    let missing = refused(&call);
    assert!(missing.contains("without a statement of the type `https://cyclonedx.org/bom`"));
    folder.done(&["sign", &reference, "--key", "evil.key", "--attest", "cyclonedx=bom.json"]);
    let update = with(&["update", "--yes"]);
    assert!(refused(&update).contains("requires it"), "{}", refused(&update));
    folder.done(&["sign", &reference, "--key", "acme.key", "--attest", "cyclonedx=bom.json"]);
    done(&update);
    done(&call);
    std::fs::write(folder.path("tools.toml"), text).unwrap();

    // Rules hold for what is in the lock file already.
    done(&call);
    let text = folder.text("tools.toml").replace("acme.pub", "evil.pub");
    std::fs::write(folder.path("tools.toml"), text).unwrap();
    let changed = refused(&call);
    assert!(changed.contains("was signed by the key sha256:"), "{changed}");
    let fetched = refused(&with(&["fetch", "--locked"]));
    assert!(fetched.contains("does not trust that; run `cofferdam update`"), "{fetched}");
    let updated = folder.run(&["update", "--yes", "--config", "tools.toml"]);
    assert!(updated.stderr.contains("the signer of `text` has changed"), "{}", updated.stderr);
    done(&call);
}

#[test]
fn an_identity_that_logged_in_to_sign_is_verified() {
    let (registry, folder) = (Registry::start(), Folder::new());
    let fixture = |name: &str| std::fs::read(root().join("tests/signatures").join(name)).unwrap();
    registry.inner.add_manifest("acme/csv", "1", &fixture("manifest.json"));
    std::fs::write(folder.path("root.json"), fixture("root.json")).unwrap();
    let reference = registry.reference("acme/csv:1");
    registry.sign(&reference, fixture("signed.json"));
    let workflow = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/";
    let issuer = "https://token.actions.githubusercontent.com";
    let host = registry.inner.host();
    let rule = |identity: &str| {
        format!(
            "[registry]\ntrusted-root = \"root.json\"\n\n[[registry.trust]]\nfrom = \
             \"{host}/acme/*\"\nidentity = \"{identity}\"\nissuer = \"{issuer}\"\n"
        )
    };
    let verify = ["verify", &reference, "--config", "tools.toml"];
    std::fs::write(folder.path("tools.toml"), rule(&format!("{workflow}*"))).unwrap();
    let verified = folder.done(&verify);
    assert!(verified.contains(&format!("signed by `{workflow}v1` of {issuer}")), "{verified}");
    std::fs::write(folder.path("tools.toml"), rule("https://github.com/acme/other/*")).unwrap();
    let refused = folder.refused(4, &verify);
    assert!(refused.contains(&format!("it is by `{workflow}v1` of {issuer}")), "{refused}");
    let identity = format!("{workflow}v*");
    let flags = ["--identity", &identity, "--issuer", issuer];
    folder.done(&[&verify[..], &flags].concat());
    // The public instance knows nothing of it.
    let public = folder.refused(4, &[&["verify", &reference][..], &flags].concat());
    assert!(public.contains("its identity cannot be verified"), "{public}");

    for (text, message) in [
        (rule("https://github.com/*"), "matches organizations of others"),
        (rule(workflow).replace("issuer", "# issuer"), "needs an `issuer`"),
        (rule(workflow).replace("identity", "# identity"), "has an `issuer` and no `identity`"),
        (rule(workflow).replace("root.json", "tools.toml"), "expected the trusted root"),
    ] {
        std::fs::write(folder.path("tools.toml"), text).unwrap();
        let invalid = folder.refused(2, &verify);
        assert!(invalid.contains(message) && invalid.contains("tools.toml:"), "{invalid}");
    }
}

#[test]
fn without_a_rule_a_plugin_is_refused_or_a_person_decides() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    let reference = registry.reference("acme/text:1.0");
    let refused = folder.refused(4, &["add", &reference, "--yes"]);
    assert!(refused.contains("no rule of [[registry.trust]] says who must have signed oci://"));
    let add = ["add", &reference, "--yes", "--config", "tools.toml"];
    std::fs::write(folder.path("tools.toml"), "[registry]\nunsigned = \"ask\"\n").unwrap();
    let asked = folder.refused(4, &add);
    assert!(asked.contains("pass --allow-unsigned"), "{asked}");
    std::fs::write(folder.path("tools.toml"), "[registry]\nunsigned = \"allow\"\n").unwrap();
    folder.done(&add);
    for (text, message) in [
        ("from = \"ghcr.io/*\"\nkeys = []", "the rule trusts no key"),
        ("from = \"ghcr.io/*\"\nkeys = [\"no.pub\"]", "no.pub cannot be used"),
        ("from = \"ghcr.io\"\nkeys = [\"no.pub\"]", "`ghcr.io` is not a pattern"),
    ] {
        std::fs::write(folder.path("bad.toml"), format!("[[registry.trust]]\n{text}\n")).unwrap();
        let invalid = folder.refused(2, &["add", &reference, "--config", "bad.toml"]);
        assert!(invalid.contains(message) && invalid.contains("bad.toml:"), "{invalid}");
    }
}
