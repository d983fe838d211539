//! Permissions that are granted by flags.

use super::*;

#[test]
fn flags_grant_what_a_plugin_asks_for() {
    let folder = Folder::new(ASKS, "");
    let tool = folder.path("tool.wasm").display().to_string();
    let call = |tool_arguments: &[&str], flags: &[&str], env: &[(&str, &str)]| {
        let plugin = ["--plugin", tool.as_str()];
        run_with(&[&["call"], tool_arguments, &plugin, flags].concat(), env)
    };
    let lang = ["env", "name=LANG"];
    assert_eq!(call(&lang, &["--allow-env", "LANG=fr"], &[]).stdout, "fr\n");
    assert_eq!(call(&lang, &["--allow-env", "LANG"], &[("LANG", "de")]).stdout, "de\n");
    let secret = ["secret", "name=github"];
    for (flags, variable) in
        [(["--secret", "github"], "github"), (["--secret", "github=TOKEN"], "TOKEN")]
    {
        let ran = call(&secret, &flags, &[(variable, "hunter2hunter2")]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
    }
    let listed = run(&[
        "list",
        "--grants",
        "--plugin",
        &tool,
        "--limit",
        "wall-ms-max=45000",
        "--allow",
        "clock:precise",
        "--allow-http",
        "GET https://api.example.com/v1",
    ]);
    assert_eq!(row(&listed.stdout, "limit wall-ms-max"), ["60000", "45000", "45000"]);
    assert_eq!(row(&listed.stdout, "clock"), ["precise", "precise", "precise"]);
    assert_eq!(row(&listed.stdout, "http GET https://api.example.com/v1"), ["yes"; 3]);

    for (flags, message) in [
        (["--allow-http", "api.example.com"], "`http:api.example.com` is not a permission"),
        (["--allow", "files:data=read-only"], "use --mount NAME=STORE"),
        (["--allow", "config:units"], "use --config FILE"),
        (["--limit", "walls=1"], "unknown field `walls`, expected one of"),
        (["--secret", "github"], "environment variable github, which is not set"),
    ] {
        let ran = call(&secret, &flags, &[]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let alone = run(&["call", "env", "--config", &folder.config, "--allow-env", "LANG"]);
    assert!(alone.stderr.contains("are for plugins named with --plugin"), "{}", alone.stderr);
}

#[test]
fn a_call_that_lacks_a_store_names_the_flag_that_grants_it() {
    let folder = Folder::new("[permissions]\nfiles = { notes = \"read-only\" }\n", "");
    std::fs::copy(guest("crash"), folder.path("tool.wasm")).unwrap();
    let tool = folder.path("tool.wasm").display().to_string();
    let misspelled = run(&["call", "panic", "--plugin", &tool, "--mount", "note=memory"]);
    assert_eq!(misspelled.code, 2);
    let message = "no plugin asks for the store `note`; they ask for `notes`";
    assert!(misspelled.stderr.contains(message), "{}", misspelled.stderr);
    // A failure that does not name the store has another reason.
    let ran = run(&["call", "panic", "--plugin", &tool]);
    assert_eq!(ran.code, 3);
    assert!(!ran.stderr.contains("not granted:"), "{}", ran.stderr);
    let markdown = guest("markdown").display().to_string();
    let ran = run(&["call", "outline", "file=/data/a.md", "--plugin", &markdown]);
    assert_eq!(ran.code, 1);
    let line = "not granted: to read any store it is given\n  to grant it: --mount NAME=DIR:ro";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
}
