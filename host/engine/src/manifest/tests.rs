//! Manifests and their errors.

use cofferdam_tool::{FileAccess, Limits, Policy};

use super::*;

const FULL: &str = r#"
[permissions]
files.notes = "read-only"
files."*" = "create-only"
http = ["GET https://api.example.com/v1"]
sockets = ["tcp db.example.com:5432"]
env = ["LANG"]
config = ["units"]
secrets = ["github"]
clock = "precise"
random = false
tools = ["word_count"]
ask = ["form", "sample"]

[limits]
wall-ms-max = 5000

[tools.t]
description = "Says it."
"#;

fn refusal(text: &str) -> String {
    Manifest::parse(Some(text), None).unwrap_err().to_string()
}

#[test]
fn a_manifest_asks() {
    let RequestedPermissions::Stated(asked) =
        Manifest::parse(Some(FULL), None).unwrap().requested()
    else {
        panic!("stated")
    };
    assert_eq!(asked.files.len(), 1);
    assert_eq!(asked.files_any, Some(FileAccess::CreateOnly));
    assert_eq!(asked.http[0].to_string(), "GET https://api.example.com/v1");
    assert_eq!(asked.sockets.first().unwrap().to_string(), "tcp db.example.com:5432");
    assert!(
        asked.env.contains("LANG")
            && asked.config.contains("units")
            && asked.secrets.contains("github")
    );
    assert!(!asked.random);
    assert_eq!(asked.limits.wall_ms_max, Some(5000));
    assert_eq!((asked.tools.len(), asked.ask.len()), (1, 2));
}

#[test]
fn a_table_of_the_file_replaces_the_one_inside() {
    let beside = "[permissions]\nenv = [\"LANG\"]\n";
    let RequestedPermissions::Stated(asked) =
        Manifest::parse(Some(beside), Some(FULL)).unwrap().requested()
    else {
        panic!("stated")
    };
    assert!(asked.http.is_empty() && asked.env.contains("LANG"));
    assert_eq!(asked.limits.wall_ms_max, Some(5000), "limits are a table of their own");
    let only_words = Manifest::parse(Some("[tools.u]\ntitle = \"U\"\n"), Some(FULL)).unwrap();
    assert!(matches!(only_words.requested(), RequestedPermissions::Stated(_)));
    assert!(only_words.tool("u").is_some() && only_words.tool("t").is_some());
}

#[test]
fn limits_without_permissions_only_lower_limits() {
    let asked = Manifest::parse(None, Some("[limits]\nwall-ms-max = 5\n")).unwrap().requested();
    let granted = asked.granted_of(&Policy::default());
    assert_eq!(granted.policy.limits, Limits { wall_ms_max: 5, ..Limits::default() });
    assert_eq!(
        Manifest::parse(None, Some("")).unwrap().requested(),
        RequestedPermissions::Unstated
    );
}

#[test]
fn a_manifest_is_refused_with_its_line() {
    assert_eq!(
        refusal("[tools.t]\ndescripton = \"x\"\n"),
        "2:1: unknown field `descripton`, expected one of `title`, `description`, `group`, `annotations`, \
         `parameters`, `schema`, `output-schema`, `arguments`, `stdin`, `output`"
    );
    let annotation = refusal("[tools.t.annotations]\nreadonly = true\n");
    assert!(annotation.starts_with("2:1: unknown field `readonly`"), "{annotation}");
    assert!(refusal("tools = 3").starts_with("1:9: invalid type"));
    assert!(refusal("[tools").starts_with("1:7: "));
    assert!(refusal("[permissions]\nnetwork = []\n").starts_with("2:1: unknown field `network`"));
    for (line, start) in [
        ("http = [\"ftp://a.example\"]", "2:9: `ftp://a.example` has a scheme"),
        (
            "http = [\"https://a.example\", \"https://127.1/\"]",
            "2:30: `https://127.1/` has a host that",
        ),
        ("sockets = [\"a.example\"]", "2:12: `a.example` write it as"),
        ("env = [\"A=B\"]", "2:8: `env:A=B` is not a permission"),
        ("secrets = [\"a b\"]", "2:12: "),
        ("files.\"a/b\" = \"read-only\"", "2:7: "),
        ("files.a = \"rw\"", "2:11: unknown variant `rw`"),
        ("tools = [\"a b\"]", "2:10: "),
        ("clock = \"fine\"", "2:9: "),
    ] {
        let refused = refusal(&format!("[permissions]\n{line}\n"));
        assert!(refused.starts_with(start), "{line}: {refused}");
    }
}

#[test]
fn words_about_strangers_are_refused() {
    let checked = |text: &str| {
        let manifest = Manifest::parse(Some(text), None).unwrap();
        manifest.check_words(|tool| (tool == "t").then(|| vec!["p"])).unwrap_err().to_string()
    };
    assert_eq!(checked("\n[tools.u]\n"), "2:8: the plugin has no tool `u`");
    assert_eq!(
        checked("[tools.t.parameters.q]\ndefault = 1\n"),
        "1:21: the tool `t` has no parameter `q`"
    );
}

#[test]
fn a_manifest_is_embedded_once() {
    let component = wat::parse_str("(component)").unwrap();
    assert_eq!(embedded(&component), Ok(None));
    let with = embed_manifest(&component, FULL).unwrap();
    assert_eq!(embedded(&with), Ok(Some(FULL)));
    assert_eq!(embed_manifest(&with, FULL), Err(EmbedError::Present));
    assert_eq!(embed_manifest(b"\0asm\x01\0\0\0", FULL), Err(EmbedError::NotAComponent));
    assert!(matches!(embed_manifest(&component, "x"), Err(EmbedError::Manifest(_))));
    let twice = sections::with_custom(&with, SECTION, b"");
    assert_eq!(embedded(&twice), Err(EmbeddedManifestError::Several));
    let not_text = sections::with_custom(&component, SECTION, b"\xff");
    assert_eq!(embedded(&not_text), Err(EmbeddedManifestError::NotText));
    let long = sections::with_custom(&component, SECTION, &vec![b' '; 262_145]);
    assert_eq!(embedded(&long), Err(EmbeddedManifestError::TooLong));
}
