//! Tests of edits of a configuration.

use super::*;

const FILE: &str = "\
# My plugins.
[stores.notes] # where I write
directory = \"notes\"

[plugins.csv] # tables
component = \"csv.wasm\"
grants.files.notes = \"read-only\" # no more than that

[plugins.gh]
component = \"gh.wasm\"

[plugins.gh.grants]
# the API
http = [
    \"GET https://api.example.com/\", # reading
    { to = \"POST https://api.example.com/\", headers = [\"Authorization: ${secret:gh}\"] },
]
";

fn editor(text: &str) -> ConfigEditor {
    ConfigEditor {
        changes: Vec::new(),
        extends_reach: false,
        path: PathBuf::from("cofferdam.toml"),
        target: PathBuf::from("cofferdam.toml"),
        before: text.to_owned(),
        form: TextForm::default(),
        document: text.parse().unwrap(),
    }
}

fn edit(text: &str, change: impl FnOnce(&mut ConfigEditor)) -> String {
    let mut file = editor(text);
    change(&mut file);
    let text = file.document.to_string();
    file.config().unwrap_or_else(|error| panic!("{error}\n{text}"));
    text
}

fn grant(
    text: &str,
    plugin: &str,
    permission: &str,
    directory: Option<&str>,
) -> crate::Result<String> {
    let mut file = editor(text);
    let (permission, directory) = (permission.parse().unwrap(), directory.map(PathBuf::from));
    file.grant(plugin, &NewGrant { permission, directory, value: Some("v".to_owned()) })?;
    Ok(edit(&file.document.to_string(), |_| {}))
}

fn granted(text: &str, plugin: &str, permission: &str) -> String {
    grant(text, plugin, permission, Some("dir")).unwrap()
}

/// Revokes a permission of the plugin `p`, whose own grants are `own`.
fn revoke(own: &str, all: &str, permission: &str) -> Result<Option<String>, String> {
    let text = format!(
        "[grants]\n{all}\n\n[stores.d]\nmemory = true\n\n[plugins.p]\ncomponent = \"p.wasm\"\n\n\
         [plugins.p.grants]\n{own}\n"
    );
    let mut file = editor(&text);
    let revoked = file.revoke("p", &permission.parse().unwrap());
    if let Ok(true) = revoked {
        return Ok(Some(edit(&file.document.to_string(), |_| {})));
    }
    assert_eq!(file.document.to_string(), text, "nothing has changed");
    assert!(file.changes.is_empty());
    revoked.map(|_| None).map_err(|error| error.to_string())
}

#[test]
fn a_grant_changes_its_line_and_no_other() {
    let text = grant(FILE, "csv", "files:notes=read-write", None).unwrap();
    assert_eq!(text, FILE.replace("\"read-only\" # no", "\"read-write\" # no"));
    let text = granted(FILE, "gh", "http:https://b.example/v1");
    assert!(text.contains("# reading\n") && text.contains("\"https://b.example/v1\""), "{text}");
    assert_eq!(
        granted(&text, "gh", "http:https://b.example/v1"),
        text,
        "granting twice changes nothing"
    );
}

#[test]
fn a_grant_takes_nothing_away() {
    let wide = granted(&granted(FILE, "csv", "files:out=read-write"), "csv", "clock:precise");
    assert_eq!(granted(&wide, "csv", "files:out=read-only"), wide);
    assert_eq!(granted(&wide, "csv", "clock:coarse"), wide);
    let create = granted(FILE, "csv", "files:out=create-only");
    edit(&create, |file| {
        let permission = "files:out=read-only".parse().unwrap();
        let grant = NewGrant { permission, directory: None, value: None };
        let error = file.grant("csv", &grant).unwrap_err().to_string();
        assert!(error.contains("grant files:out=read-write, or revoke"), "{error}");
    });
    assert!(granted(&create, "csv", "files:out=read-write").contains("read-write"));
}

#[test]
fn everything_can_be_granted_and_revoked() {
    for permission in [
        "files:out=create-only",
        "http:GET https://b.example/",
        "socket:tcp b.example:1",
        "env:LANG",
        "config:units",
        "secret:gh",
        "clock:precise",
        "tool:word_count",
        "ask:form",
        "limit:wall-ms-max=5",
    ] {
        for plugin in ["csv", "gh"] {
            let with = granted(FILE, plugin, permission);
            assert_ne!(with, FILE);
            assert!(with.starts_with("# My plugins.\n[stores.notes] # where I write\n"), "{with}");
            let permission: Permission = permission.parse().unwrap();
            let without = edit(&with, |file| assert!(file.revoke(plugin, &permission).unwrap()));
            edit(&without, |file| assert!(!file.revoke(plugin, &permission).unwrap()));
        }
    }
    let text = edit(FILE, |file| {
        let rule = "http:POST https://api.example.com/".parse().unwrap();
        assert!(file.revoke("gh", &rule).unwrap());
    });
    assert!(text.contains("# reading") && !text.contains("POST"), "{text}");
}

#[test]
fn revoking_everything_takes_default_grants_too() {
    let text = edit(FILE, |file| file.revoke_all("gh").unwrap());
    assert!(text.contains("default-grants = false") && !text.contains("http"), "{text}");
}

#[test]
fn an_unknown_plugin_is_an_error() {
    let mut file = editor(FILE);
    assert!(
        file.revoke("missing", &Permission::Random)
            .unwrap_err()
            .to_string()
            .contains("has no plugin `missing`")
    );
}

#[test]
fn revoking_everything_widens_nothing() {
    for (own, all) in [
        ("random = false\nclock = \"frozen\"\nenv.A = \"x\"\n", ""),
        ("", "random = false\nclock = \"frozen\"\n"),
    ] {
        let text = format!(
            "[grants]\n{all}\n[plugins.p]\ncomponent = \"p.wasm\"\n[plugins.p.grants]\n{own}"
        );
        let text = edit(&text, |file| {
            file.revoke_all("p").unwrap();
            let (offered, shared) = file.offered("p").unwrap();
            assert!(!offered.random && offered.clock == ClockPrecision::Frozen);
            assert!(offered.env.is_empty() && shared.is_none());
        });
        assert!(text.contains("[plugins.p.grants]\n"), "{text}");
    }
    let dotted = "[plugins.p]\ncomponent = \"p.wasm\"\ngrants.random = false # never\ngrants.env.A = \"x\"\n";
    let text = edit(dotted, |file| file.revoke_all("p").unwrap());
    assert!(text.contains("grants.random = false # never\n") && !text.contains("env"), "{text}");
}

#[test]
fn what_all_plugins_are_given_is_not_revoked_from_one() {
    for (own, all, permission) in [
        ("files.d = \"read-only\"", "files.d = \"read-write\"", "files:d=read-only"),
        ("files.d = \"read-only\"", "files.d = \"create-only\"", "files:d=read-only"),
        ("files.d = \"read-only\"", "files.d = \"read-write\"", "files:*=read-only"),
        ("env.A = \"x\"", "env.A = \"y\"", "env:A"),
        ("", "env.A = \"y\"", "env:A"),
        ("tools = [\"word_count\"]", "tools = [\"word_count\"]", "tool:word_count"),
        (
            "http = [\"https://a.example/v1\"]",
            "http = [\"https://*/\"]",
            "http:https://a.example/v1",
        ),
        ("clock = \"coarse\"", "clock = \"precise\"", "clock:coarse"),
        ("", "clock = \"precise\"", "clock:precise"),
    ] {
        let error = revoke(own, all, permission).unwrap_err();
        assert!(error.starts_with("`p` could still "), "{error}");
        assert!(error.contains("because [grants] gives it to all plugins; remove it"), "{error}");
    }
    let (own, all) = ("files.d = \"read-write\"", "files.d = \"read-only\"");
    let narrower = revoke(own, all, "files:d=read-write").unwrap().unwrap();
    assert!(!narrower.contains("read-write"), "{narrower}");
}

#[test]
fn a_permission_that_a_plugin_does_not_have_is_not_revoked() {
    for (own, all, permission) in [
        ("clock = \"frozen\"", "", "clock:precise"),
        ("clock = \"frozen\"", "", "clock:coarse"),
        ("clock = \"coarse\"", "clock = \"precise\"", "clock:precise"),
        ("files.d = \"read-only\"", "", "files:d=read-write"),
        ("random = false", "random = true", "random"),
        ("http = [\"https://*/\"]", "", "http:https://a.example/"),
    ] {
        assert_eq!(revoke(own, all, permission), Ok(None), "{own} {permission}");
    }
    assert!(revoke("", "", "clock:frozen").unwrap_err().contains("cannot be revoked"));
}

#[test]
fn random_numbers_and_the_clock_are_taken_away() {
    for (own, all, permission, line) in [
        ("", "", "random", "random = false"),
        ("", "random = true", "random", "random = false"),
        ("", "", "clock:coarse", "clock = \"frozen\""),
        ("clock = \"precise\"", "", "clock:coarse", "clock = \"frozen\""),
    ] {
        let text = revoke(own, all, permission).unwrap().unwrap();
        assert!(text.contains(line), "{text}");
    }
    let text = revoke("clock = \"precise\"", "", "clock:precise").unwrap().unwrap();
    assert!(!text.contains("clock"), "{text}");
}

#[test]
fn a_store_keeps_its_directory() {
    let error =
        grant(FILE, "csv", "files:notes=read-write", Some("other")).unwrap_err().to_string();
    assert!(
        error.starts_with("store `notes` is already the directory ")
            && error.contains("notes; leave out"),
        "{error}"
    );
    let same = grant(FILE, "csv", "files:notes=read-write", Some("notes")).unwrap();
    assert!(same.contains("read-write"), "{same}");
    let memory = "[stores.m]\nmemory = true\n[plugins.p]\ncomponent = \"p.wasm\"\n";
    let error = grant(memory, "p", "files:m=read-only", Some("m")).unwrap_err().to_string();
    assert!(error.contains("`m` is already a store in memory"), "{error}");
}

#[test]
fn rules_in_tables_are_granted_and_revoked() {
    let rules = "[[plugins.p.grants.http]]\nto = \"GET https://a.example/\"\naddresses = [\"10.0.0.0/8\"] # ours\n";
    let text = format!("[plugins.p]\ncomponent = \"p.wasm\"\n\n{rules}");
    assert_eq!(granted(&text, "p", "http:GET https://a.example/"), text, "it is there");
    let more = granted(&text, "p", "http:GET https://b.example/");
    assert!(more.starts_with(&text), "{more}");
    assert_eq!(more.matches("[[plugins.p.grants.http]]").count(), 2, "{more}");
    let rule: Permission = "http:GET https://a.example/".parse().unwrap();
    let gone = edit(&more, |file| {
        assert!(file.revoke("p", &rule).unwrap());
        assert!(!file.revoke("p", &rule).unwrap());
    });
    assert!(!gone.contains("a.example") && gone.contains("b.example"), "{gone}");
    let last = edit(&text, |file| assert!(file.revoke("p", &rule).unwrap()));
    assert!(!last.contains("http"), "{last}");
}

#[test]
fn inline_plugins_are_edited() {
    let text = "[plugins]\np = { component = \"p.wasm\" }\n";
    for permission in ["files:out=read-only", "http:https://a.example/", "env:A", "clock:precise"] {
        let with = granted(text, "p", permission);
        assert_ne!(with, text);
        edit(&with, |file| assert!(file.revoke("p", &permission.parse().unwrap()).unwrap()));
        edit(&with, |file| file.revoke_all("p").unwrap());
    }
}

#[test]
fn removing_a_plugin_keeps_the_comments_that_are_not_its_own() {
    let header = "# Tools of the team.\n# Ask before you add one.\n";
    let text = format!(
        "{header}
# counts
[plugins.a]
component = \"a.wasm\"

[plugins.a.grants]
random = false

# Section

# b is slow
[plugins.b]
component = \"b.wasm\"
[plugins.c]
component = \"c.wasm\"
"
    );
    let without = |text: &str, name: &str| edit(text, |file| file.remove_plugin(name).unwrap());
    let text = without(&text, "a");
    let start = format!("{header}\n# Section\n\n# b is slow\n[plugins.b]");
    assert!(text.starts_with(&start), "{text}");
    let text = without(&text, "b");
    let last = format!("{header}\n# Section\n\n[plugins.c]\ncomponent = \"c.wasm\"\n");
    assert_eq!(text, last);
    let empty = without(&text, "c");
    assert_eq!(empty, format!("{header}\n# Section\n"));
    let again = edit(&empty, |file| file.add_plugin("c", "c.wasm").unwrap());
    assert_eq!(again, last);
}

#[test]
fn line_ends_and_the_byte_order_mark_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cofferdam.toml");
    let text = format!("\u{feff}{}", FILE.replace('\n', "\r\n"));
    std::fs::write(&path, &text).unwrap();
    let mut file = ConfigEditor::open_ambient(&path).unwrap();
    assert!(file.revoke("gh", &Permission::Random).unwrap());
    file.save().unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, format!("{text}random = false\r\n"));
}
