//! Middleware of `[agent.calls]`.

use super::*;

fn chat(scene: &Scene, table: &str) -> Ran {
    let secrets = "[secrets]\nkey = { env = \"KEY\" }\nshort = { env = \"SHORT\" }\n";
    std::fs::write(scene.path("c.toml"), format!("[agent.calls]\n{table}\n{secrets}")).unwrap();
    let own = ["Read.", "--model", "script:model.jsonl", "--config", "c.toml"];
    let mut command = scene.command(&[&own[..], &["--files", "notes", "--json"]].concat());
    ran(command.env("KEY", "open sesame").env("SHORT", "x").output().unwrap())
}

#[test]
fn results_are_redacted_and_calls_are_limited() {
    let read = |file: &str| calls("file_access_read_file", json!({"file_name": file}));
    let scene = Scene::new(&[read("k.md"), read("k.md"), says("Read.")]);
    std::fs::write(scene.path("notes/k.md"), "It is open sesame.\n").unwrap();
    let rate = "rate = { calls = 1, seconds = 600 }\n";
    let ran = chat(&scene, &format!("redact = [\"key\"]\n{rate}timeout = 60\nretries = 0\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = ran.results();
    assert!(results[0].contains("It is [secret key]."), "{}", ran.stdout);
    assert!(results[1].contains("'file_access_read_file' was called too often."), "{}", ran.stdout);
    let plain = chat(&scene, "");
    assert!(plain.results()[1].contains("open sesame"), "{}", plain.stdout);
}

#[test]
fn what_is_wrong_with_the_table_is_named() {
    let scene = Scene::new(&[]);
    for (table, expected) in [
        ("retries = 101", "c.toml:2:11: expected at most 100 retries"),
        ("timeout = 0", "c.toml:2:11: "),
        ("rate = { calls = 1 }", "c.toml:2:8: missing field `seconds`"),
        (
            "redact = [\"none\"]",
            "[agent.calls] names the secret `none`, which this file does not have",
        ),
        ("redact = [\"short\"]", "the secret `short` is shorter than"),
        ("log = true", "c.toml:2:1: unknown field `log`"),
    ] {
        let ran = chat(&scene, table);
        assert_eq!(ran.code, Some(2), "{table}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{table}: {}", ran.stderr);
    }
}
