//! Files that control grants, which no plugin may write.

use std::os::unix::fs::symlink;

use super::{Folder, at_a_terminal, run};

/// A plugin that can write the configuration or a component decides its own permissions.
#[test]
fn a_mount_cannot_hold_what_decides_about_grants() {
    let folder = Folder::new("", "");
    for access in ["read-write", "create-only"] {
        let config = format!(
            "[stores.all]\ndirectory = \".\"\n[plugins.tool]\ncomponent \
             = \"tool.wasm\"\ngrants.files.all = \"{access}\"\n"
        );
        std::fs::write(&folder.config, &config).unwrap();
        let ran = folder.call("names", "{}", &[]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("decides what a plugin may do"), "{}", ran.stderr);
        std::fs::write(&folder.config, config.replace(access, "read-only")).unwrap();
        assert_eq!(folder.call("names", "{}", &[]).code, 0);
    }
    let plugin = folder.path("tool.wasm").display().to_string();
    let mount = format!("data={}", folder.folder.path().display());
    assert_eq!(run(&["list", "--plugin", &plugin, "--mount", &mount]).code, 2);
    assert_eq!(run(&["list", "--plugin", &plugin, "--mount", &format!("{mount}:ro")]).code, 0);
}

#[test]
fn a_directory_that_decides_about_grants_is_not_taken_at_a_prompt_either() {
    let folder = Folder::new("[permissions]\nfiles.all = \"read-write\"\n", "");
    let before = folder.text();
    let answers = [("Grant it?", "a\n"), ("Directory for /all: ", ".\n")];
    let shown =
        at_a_terminal(&folder, &["call", "names", "{}", "--config", &folder.config], &answers);
    assert!(shown.contains("decides what a plugin may do"), "{shown}");
    assert_eq!(folder.text(), before, "what is refused is not written");
}

#[test]
fn what_decides_about_grants_is_protected_where_it_is_named_and_where_it_is() {
    let folder = Folder::new("", "");
    for directory in ["mnt", "conf", "parts"] {
        std::fs::create_dir(folder.path(directory)).unwrap();
    }
    let refused = |config: &str, what: &str| {
        let config = folder.path(config).display().to_string();
        let ran = run(&["call", "env", "{}", "--config", &config]);
        assert_eq!(ran.code, 2, "{what}: {} {}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("which decides what a plugin may do"),
            "{what}: {}",
            ran.stderr
        );
    };
    let text = |component: &str| {
        let (mnt, component) = (folder.path("mnt"), folder.path(component));
        format!(
            "[stores.data]\ndirectory = {mnt:?}\n[plugins.tool]\ncomponent = {component:?}\n\
             grants = {{ files.data = \"read-write\" }}\n"
        )
    };
    // The lock file is beside the name of the configuration, which is a link.
    std::fs::write(folder.path("conf/real.toml"), text("tool.wasm")).unwrap();
    symlink("../conf/real.toml", folder.path("mnt/c.toml")).unwrap();
    refused("mnt/c.toml", "a linked configuration");
    // The lock file is itself a link.
    std::fs::write(folder.path("mnt/lock"), "{\"plugins\":{}}").unwrap();
    symlink("../mnt/lock", folder.path("conf/real.lock")).unwrap();
    refused("conf/real.toml", "a linked lock");
    std::fs::remove_file(folder.path("conf/real.lock")).unwrap();
    // The manifest is beside the name of the component, which links to another link.
    symlink("../mnt/two.wasm", folder.path("parts/one.wasm")).unwrap();
    symlink("../tool.wasm", folder.path("mnt/two.wasm")).unwrap();
    std::fs::write(folder.path("conf/linked.toml"), text("parts/one.wasm")).unwrap();
    refused("conf/linked.toml", "a linked component");
    // None of these files is in the mount.
    let config = folder.path("conf/real.toml").display().to_string();
    let ran = run(&["config", "check", &config]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Returns a configuration in which `tool` may write to `out`, with further tables.
fn writes_to_out(more: &str) -> String {
    format!(
        "[stores.out]\ndirectory = \"out\"\n[plugins.tool]\ncomponent = \"tool.wasm\"\n\
         grants.files.out = \"read-write\"\n{more}"
    )
}

/// A plugin could create such a file while a server runs.
#[test]
fn files_that_do_not_exist_yet_are_protected() {
    let folder = Folder::new("", "");
    std::fs::create_dir_all(folder.path("out/sub")).unwrap();
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    symlink("../elsewhere", folder.path("out/link")).unwrap();
    let component = |path: &str| format!("[plugins.late]\ncomponent = \"{path}\"\n");
    for (more, is_refused) in [
        (component("late.wasm"), false),
        (component("out/late.wasm"), true),
        (component("out/sub/new/late.wasm"), true),
        // The plugin can replace the link.
        (component("out/link/late.wasm"), true),
        (component("out/../late.wasm"), false),
        (component("elsewhere/late.wasm"), false),
        (format!("[servers.late]\ncommand = [\"node\", {:?}]\n", folder.path("out/a.js")), true),
    ] {
        std::fs::write(&folder.config, writes_to_out(&more)).unwrap();
        let ran = folder.call("names", "{}", &[]);
        let message = "decides what a plugin may do";
        assert_eq!(ran.stderr.contains(message), is_refused, "{more}: {}", ran.stderr);
        assert_eq!(ran.code == 2, is_refused, "{more}: {}", ran.stderr);
    }
}

#[test]
fn a_grant_that_would_reach_such_a_file_is_not_written() {
    let folder = Folder::new("", "[stores.all]\ndirectory = \".\"\n");
    let before = folder.text();
    let ran = run(&["grant", "tool", "files:all=read-write", "--config", &folder.config]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("decides what a plugin may do"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("may now") && folder.text() == before, "{}", ran.stderr);
    let ran = run(&["grant", "tool", "files:all=read-only", "--config", &folder.config]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    // The component of another plugin.
    let config = "[stores.out]\ndirectory = \"out\"\n[plugins.other]\ncomponent = \"out/b.wasm\"\n";
    let folder = Folder::new("", config);
    std::fs::create_dir(folder.path("out")).unwrap();
    let before = folder.text();
    let ran = run(&["grant", "tool", "files:out=read-write", "--config", &folder.config]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(folder.text(), before);
}

#[test]
fn a_revocation_that_fails_changes_and_says_nothing() {
    let folder = Folder::new("", "[plugins.tool.grants]\nenv = { LANG = \"de\" }\n");
    let before = folder.text();
    let ran = run(&["revoke", "tool", "env:LANG", "env:HOME", "--config", &folder.config]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!ran.stderr.contains("may no longer"), "{}", ran.stderr);
    assert_eq!(folder.text(), before);
}
