//! The binary and MCP hosts: entries in their configuration files, and bundles.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::cli::{Ran, ran};

/// Runs the binary in a folder that is also the home directory.
fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("HOME", folder)
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .current_dir(folder)
        .stdin(Stdio::null());
    ran(command.args(arguments).output().unwrap())
}

/// Returns a folder with a plugin, and its path without links.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(guest("text"), folder.path().join("text.wasm")).unwrap();
    std::fs::create_dir(folder.path().join("reports")).unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

/// Flags of the plugin, with paths relative to the folder.
const FLAGS: [&str; 4] = ["--plugin", "text.wasm", "--mount", "data=reports:ro"];

fn config(folder: &Path, host: &str, more: &[&str]) -> Ran {
    run(folder, &[&["mcp", "config", "--host", host], &FLAGS[..], more].concat())
}

/// Returns the arguments that a host is configured with: all paths are absolute.
fn arguments(folder: &Path) -> Vec<String> {
    let folder = folder.display();
    let cache = shared_cache();
    [
        "serve",
        "--plugin",
        &format!("text={folder}/text.wasm"),
        "--mount",
        &format!("data={folder}/reports:ro"),
        "--cache-dir",
        &cache.display().to_string(),
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn each_host_gets_its_own_form_with_absolute_paths() {
    let (_keep, folder) = folder();
    let server = json!({"command": binary(), "args": arguments(&folder)});
    for (host, wanted) in [
        ("claude", json!({"mcpServers": {"cofferdam": server}})),
        ("claude-desktop", json!({"mcpServers": {"cofferdam": server}})),
        ("cursor", json!({"mcpServers": {"cofferdam": server}})),
        (
            "vscode",
            json!({"servers": {"cofferdam": {"type": "stdio", "command": binary(), "args": arguments(&folder)}}}),
        ),
    ] {
        let ran = config(&folder, host, &[]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{host}");
        assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), wanted, "{host}");
    }
    let codex = config(&folder, "codex", &["--name", "reports"]).stdout;
    let quoted =
        |words: &[String]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>();
    let binary = binary().display().to_string();
    let words = quoted(&arguments(&folder));
    let wanted =
        format!("[mcp_servers.reports]\ncommand = \"{binary}\"\nargs = [{}]\n", words.join(", "));
    assert_eq!(codex, wanted);
    let flags = ["--confinement", "full", "--", "--receipts", "full"];
    let goose = config(&folder, "goose", &flags).stdout;
    assert!(
        goose.starts_with("extensions:\n  cofferdam:\n    enabled: true\n    type: \"stdio\"\n"),
        "{goose}"
    );
    let more = r#""--confinement","full","--receipts","full""#;
    assert!(goose.contains(&format!("    args: [{},{more}]\n", words.join(","))), "{goose}");
}

#[test]
fn what_serve_would_refuse_is_refused_before_a_host_is_configured() {
    let (_keep, folder) = folder();
    for (arguments, words) in [
        (&["--plugin", "none.wasm"][..], "there is no file none.wasm"),
        (&[], "no tools are named"),
        (&["--plugin", "text.wasm", "--mount", "a=nowhere"], "cannot be mounted"),
        (&["--config", "none.toml"], "none.toml"),
        (&["--plugin", "text.wasm", "--name", "a.b"], "expected 1 to 24 letters"),
    ] {
        let ran =
            run(&folder, &[&["mcp", "config", "--host", "claude", "--write"], arguments].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert!(!folder.join(".mcp.json").exists());
}

#[test]
fn an_entry_is_put_where_each_host_looks() {
    let (_keep, folder) = folder();
    for (host, path) in [
        ("claude", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
    ] {
        let printed = config(&folder, host, &[]).stdout;
        let ran = config(&folder, host, &["--write"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("{path} with an entry for `cofferdam`")),
            "{}",
            ran.stderr
        );
        assert_eq!(std::fs::read_to_string(folder.join(path)).unwrap(), printed, "{host}");
        let again = config(&folder, host, &["--write"]);
        assert!(again.stderr.contains("nothing was changed"), "{}", again.stderr);
        assert_eq!(std::fs::read_to_string(folder.join(path)).unwrap(), printed, "{host}");
    }
    assert!(
        !folder.join(".mcp.json.before-cofferdam").exists(),
        "nothing was changed, nothing is copied"
    );
}

#[test]
fn a_file_of_a_host_keeps_what_is_there_and_what_it_was() {
    let (_keep, folder) = folder();
    let real = folder.join("dotfiles.json");
    let before = "{\n    \"mcpServers\": {\n        \"other\": { \"command\": \"npx\" }\n    },\n    \"n\": 1e400\n}\n";
    std::fs::write(&real, before).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("dotfiles.json", folder.join("link.json")).unwrap();
    let ran = config(&folder, "cursor", &["--write", "link.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let after = std::fs::read_to_string(&real).unwrap();
    let anchor = "\"npx\" }";
    let (head, tail) = before.split_once(anchor).unwrap();
    assert!(after.starts_with(&format!("{head}{anchor},\n        \"cofferdam\": {{")), "{after}");
    assert!(after.ends_with(tail), "{after}");
    assert!(folder.join("link.json").is_symlink());
    let backup = folder.join("dotfiles.json.before-cofferdam");
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), before);
    for path in [&real, &backup] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn comments_and_other_servers_are_never_lost() {
    let (_keep, folder) = folder();
    for (host, before, words) in [
        ("vscode", "{\n  // mine\n  servers: {}\n}\n", "it is not JSON with comments"),
        (
            "claude",
            "{\"mcpServers\": {\"cofferdam\": {\"command\": \"npx\"}}}",
            "another server there (npx)",
        ),
        ("codex", "[mcp_servers.cofferdam]\nurl = \"https://a.example\"\n", "another server there"),
        ("goose", "extensions: {a: {}}\n", "paste the output under `extensions:`"),
    ] {
        std::fs::write(folder.join("file"), before).unwrap();
        let ran = config(&folder, host, &["--write", "file"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(words) && ran.stderr.contains("file is left as it is"),
            "{}",
            ran.stderr
        );
        assert_eq!(std::fs::read_to_string(folder.join("file")).unwrap(), before);
    }
    assert!(!folder.join("file.before-cofferdam").exists());
}

#[test]
fn variables_that_a_host_has_to_pass_on_are_named() {
    let (_keep, folder) = folder();
    let text = "[plugins.text]\ncomponent = \"text.wasm\"\ngrants.env.LANG = { env = \"LANG\" }\n\
                [secrets]\ngh = { env = \"GITHUB_TOKEN\" }\n\
                [skills.grants.env]\nTERM = { env = \"TERM\" }\n";
    std::fs::write(folder.join("cofferdam.toml"), text).unwrap();
    let ran = run(&folder, &["mcp", "config", "--host", "claude", "--config", "cofferdam.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("which the client must pass on: GITHUB_TOKEN, LANG, TERM"),
        "{}",
        ran.stderr
    );
    let path = folder.join("cofferdam.toml").display().to_string();
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(printed["mcpServers"]["cofferdam"]["args"][2], path);
}

/// Returns the files of a zip archive with their modes.
fn unpacked(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).unwrap();
        files.insert(file.name().unwrap().into_owned(), (file.unix_mode().unwrap(), contents));
    }
    files
}

#[test]
fn a_bundle_holds_everything_but_secrets_and_is_the_same_each_time() {
    let (_keep, folder) = folder();
    let text = "# weather\n[secrets]\ngh = { env = \"GITHUB_TOKEN\" }\n[stores.scratch]\nmemory = true\n\
                [plugins.words] # counts\ncomponent = \"./text.wasm\"\ngrants.secrets = [\"gh\"]\n\
                grants.files.scratch = \"read-write\"\n";
    std::fs::write(folder.join("cofferdam.toml"), text).unwrap();
    std::fs::write(folder.join("text.toml"), "[permissions]\nsecrets = [\"gh\"]\n").unwrap();
    let mut bundles = Vec::new();
    for output in ["a.mcpb", "b.mcpb"] {
        let flags =
            ["--name", "words", "--release", "1.2.0", "--author", "A. Person", "--timeout", "5s"];
        let ran = run(
            &folder,
            &[&["mcp", "bundle", output, "--config", "cofferdam.toml"], &flags[..]].concat(),
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("{output} holds 3 tools")), "{}", ran.stderr);
        bundles.push(std::fs::read(folder.join(output)).unwrap());
    }
    assert!(bundles[0] == bundles[1], "the bytes depend on the contents alone");
    let files = unpacked(&bundles[0]);
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    let wanted = [
        "cofferdam.lock",
        "cofferdam.toml",
        "manifest.json",
        "plugins/words.toml",
        "plugins/words.wasm",
        "server/cofferdam",
    ];
    assert_eq!(names, wanted);
    assert_eq!(files["server/cofferdam"].0, 0o100_755);
    assert!(files["server/cofferdam"].1 == std::fs::read(binary()).unwrap());
    assert!(files["plugins/words.wasm"].1 == std::fs::read(guest("text")).unwrap());
    let config = String::from_utf8(files["cofferdam.toml"].1.clone()).unwrap();
    assert_eq!(config, text.replace("./text.wasm", "plugins/words.wasm"));
    let manifest: Value = serde_json::from_slice(&files["manifest.json"].1).unwrap();
    assert_eq!(manifest["manifest_version"], "0.4");
    assert_eq!((&manifest["name"], &manifest["version"]), (&json!("words"), &json!("1.2.0")));
    let started = json!({
        "command": "${__dirname}/server/cofferdam",
        "args": ["serve", "--config", "${__dirname}/cofferdam.toml", "--timeout", "5000ms"],
        "env": { "GITHUB_TOKEN": "${user_config.GITHUB_TOKEN}" },
    });
    assert_eq!(manifest["server"]["mcp_config"], started);
    assert_eq!(manifest["user_config"]["GITHUB_TOKEN"]["sensitive"], true);

    // The bundle works when unpacked elsewhere, and notices a replaced plugin.
    let there = tempfile::tempdir().unwrap();
    for (name, (_, contents)) in &files {
        let path = there.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }
    let call = |code: i32| {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("GITHUB_TOKEN", "a-long-secret")
            .env("COFFERDAM_CACHE_DIR", shared_cache());
        let call = ["call", "word_count", "{\"text\":\"a b\"}", "--config", "cofferdam.toml"];
        let ran =
            command.args(call).current_dir(there.path()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(ran.status.code(), Some(code), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    call(0);
    std::fs::copy(guest("csv"), there.path().join("plugins/words.wasm")).unwrap();
    call(4);
}

#[test]
fn directories_of_a_bundle_are_chosen_by_the_one_who_installs_it() {
    let (_keep, folder) = folder();
    let flags = ["--mount", "s=memory", "--files", "reports", "words.mcpb"];
    let ran = run(&folder, &[&["mcp", "bundle"], &FLAGS[..], &flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let files = unpacked(&std::fs::read(folder.join("words.mcpb")).unwrap());
    assert_eq!(files.len(), 3, "no configuration is needed");
    let manifest: Value = serde_json::from_slice(&files["manifest.json"].1).unwrap();
    let arguments = json!([
        "serve",
        "--plugin",
        "text=${__dirname}/plugins/text.wasm",
        "--mount",
        "data=${user_config.data}:ro",
        "--mount",
        "s=memory",
        "--files",
        "workspace=${user_config.workspace}",
    ]);
    assert_eq!(manifest["server"]["mcp_config"]["args"], arguments);
    assert_eq!(manifest["user_config"]["data"]["type"], "directory");
    assert_eq!(manifest["user_config"].as_object().unwrap().len(), 2);
    assert!(
        !String::from_utf8_lossy(&files["manifest.json"].1).contains(&folder.display().to_string())
    );
}

#[test]
fn what_a_bundle_cannot_carry_is_refused() {
    let (_keep, folder) = folder();
    for (table, words) in [
        ("[secrets]\ndb = { file = \"db.key\" }\n", "which a bundle does not carry"),
        ("[stores.notes]\ndirectory = \"reports\"\n", "a directory of this machine"),
        ("[skills]\ndirectories = [\"reports\"]\n", "does not carry directories of skills"),
    ] {
        std::fs::write(
            folder.join("c.toml"),
            format!("{table}[plugins.t]\ncomponent = \"text.wasm\"\n"),
        )
        .unwrap();
        let ran = run(&folder, &["mcp", "bundle", "x.mcpb", "--config", "c.toml"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(words) && ran.stderr.contains("c.toml:2:"), "{}", ran.stderr);
    }
    std::fs::write(folder.join("c.toml"), "[plugins.t]\ncomponent = \"text.wasm\"\n").unwrap();
    let both = ["mcp", "bundle", "x.mcpb", "--config", "c.toml", "--plugin", "text.wasm"];
    assert_eq!(run(&folder, &both).code, 2);
    assert!(!folder.join("x.mcpb").exists());
}
