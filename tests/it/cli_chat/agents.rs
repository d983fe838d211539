//! Agents that are defined in YAML files.

use super::*;

const COUNTER: &str = "
name: counter
model: script:model.jsonl
instructions: '@rules.md'
tools: [word_count]
settings: {max-output-tokens: 500, stop: [END]}
loop: {max-iterations: 3}
choice: {type: auto, functions: [text.word_count]}
approvals:
  - {effect: deny, tool: word_count, arguments: {text: {equals: secret}}}
";

/// Returns a conversation in which the model calls three tools.
fn scene(agent: &str) -> Scene {
    let scene = Scene::new(&[
        json!({"calls": [
            {"tool": "word_count", "arguments": {"text": "a b"}},
            {"tool": "word_count", "arguments": {"text": "secret"}},
            {"tool": "lines_matching", "arguments": {"text": "a", "pattern": "a"}},
        ]}),
        says("Done."),
    ]);
    std::fs::create_dir(scene.path("agents")).unwrap();
    std::fs::write(scene.path("agents/counter.yaml"), agent).unwrap();
    std::fs::write(scene.path("agents/rules.md"), "Count.").unwrap();
    std::fs::rename(scene.path("model.jsonl"), scene.path("agents/model.jsonl")).unwrap();
    scene
}

#[test]
fn an_agent_has_the_model_the_tools_and_the_rules_of_its_file() {
    let scene = scene(COUNTER);
    let ran =
        scene.run(&["Go.", "--agent", "agents/counter.yaml", "-p", &plugin("text"), "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = ran.results();
    assert!(results[0].contains("\"words\":2"), "{results:?}");
    assert!(!results[1].contains("words"), "{results:?}");
    assert!(results[2].contains("\"lines_matching\" not found"), "{results:?}");
}

#[test]
fn an_agent_has_only_the_skills_of_its_file() {
    let choice = "choice: {type: auto, functions: [text.word_count]}\n";
    let of_skills =
        |skills: &str| COUNTER.replace(choice, "").replace("tools:", &format!("{skills}\ntools:"));
    let scene = scene(&of_skills("skills: [tides]"));
    for name in ["tides", "taxes"] {
        let skill = format!("---\nname: {name}\ndescription: About {name}.\n---\n# {name}\n");
        std::fs::create_dir_all(scene.path("skills").join(name)).unwrap();
        std::fs::write(scene.path("skills").join(name).join("SKILL.md"), skill).unwrap();
    }
    let load = |name: &str| json!({"tool": "load_skill", "arguments": {"skill_name": name}});
    let replies = [json!({"calls": [load("tides"), load("taxes")]}), says("Done.")];
    let lines: Vec<_> = replies.iter().map(ToString::to_string).collect();
    std::fs::write(scene.path("agents/model.jsonl"), lines.join("\n")).unwrap();
    let flags = ["Go.", "--agent", "agents/counter.yaml", "--skills", "skills", "--yes", "--json"];
    let ran = scene.run(&[&flags[..], &["-p", &plugin("text")]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = ran.results();
    assert!(results[0].contains("# tides"), "{results:?}");
    assert!(!results[1].contains("# taxes"), "{results:?}");
    std::fs::write(scene.path("agents/counter.yaml"), of_skills("skills: [moon]")).unwrap();
    let ran = scene.run(&[&flags[..], &["-p", &plugin("text")]].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("there is no skill `moon`; skills: taxes, tides"),
        "{}",
        ran.stderr
    );
}

#[test]
fn mistakes_in_the_file_of_an_agent_have_a_position() {
    for (correct, wrong, expected) in [
        ("[word_count]\nsettings", "[word_cont]\nsettings", "counter.yaml:5:8: there is no tool"),
        ("max-iterations: 3", "max-iterations: 0", "counter.yaml:7:7: max_iterations must be"),
        ("type: auto", "type: never", "counter.yaml:8:9: "),
        ("stop:", "halt:", "counter.yaml:6:"),
        ("'@rules.md'", "'@none.md'", "none.md: No such file"),
        ("script:model.jsonl", "'openai:'", "counter.yaml:3:8: `openai:` names no model"),
        ("name: counter", "file: other.yaml", "cannot name another one"),
    ] {
        assert!(COUNTER.contains(correct), "{correct}");
        let scene = scene(&COUNTER.replace(correct, wrong));
        let ran = scene.run(&["Go.", "--agent", "agents/counter.yaml", "-p", &plugin("text")]);
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn a_workflow_names_the_files_of_its_agents() {
    let scene = scene(COUNTER);
    let workflow = "agents:\n  count: {file: agents/counter.yaml}\n";
    std::fs::write(scene.path("w.yaml"), workflow).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache());
        command.env("XDG_STATE_HOME", scene.path("state")).current_dir(scene.path("."));
        ran(command.arg("workflow").args(arguments).stdin(Stdio::null()).output().unwrap())
    };
    let done = run(&["run", "w.yaml", "Go.", "-p", &plugin("text")]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "Done.\n"), "{}", done.stderr);

    let both = workflow.replace("}", ", tools: all}");
    std::fs::write(scene.path("w.yaml"), both).unwrap();
    let refused = run(&["check", "w.yaml"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("w.yaml:2:17: the file defines the agent"),
        "{}",
        refused.stderr
    );
}

#[test]
fn answers_have_the_form_that_the_file_asks_for() {
    const JUDGE: &str = "
model: script:model.jsonl
output: {type: object, properties: {score: {type: integer}}, required: [score]}
";
    let chat = |replies: &[Value]| {
        let scene = scene(JUDGE);
        let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
        std::fs::write(scene.path("agents/model.jsonl"), lines.join("\n")).unwrap();
        scene.run(&["Judge.", "--agent", "agents/counter.yaml"])
    };
    let fits = chat(&[says(r#"{"score":7}"#)]);
    assert_eq!((fits.code, fits.stdout.as_str()), (Some(0), "{\"score\":7}\n"), "{}", fits.stderr);
    let repaired = chat(&[says("Seven."), says(r#"{"score":7}"#)]);
    let expected = "Seven.\n{\"score\":7}\n";
    assert_eq!(
        (repaired.code, repaired.stdout.as_str()),
        (Some(0), expected),
        "{}",
        repaired.stderr
    );
    let failed = chat(&[says("Seven."), says("Eight.")]);
    assert_eq!(failed.code, Some(4), "{}", failed.stderr);
    assert!(failed.stderr.contains("not a JSON object"), "{}", failed.stderr);
}

/// Returns a scene with an agent in a loop that ends with `DONE`.
fn bounded(more: &str, replies: &[Value]) -> Scene {
    let agent = "model: script:model.jsonl\ntools: all\nbounded:\n  until: {contains: DONE}\n";
    let scene = scene(&format!("{agent}{more}"));
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    std::fs::write(scene.path("agents/model.jsonl"), lines.join("\n")).unwrap();
    scene
}

const LOOPED: [&str; 3] = ["Translate.", "--agent", "agents/counter.yaml"];

#[test]
fn an_agent_runs_in_iterations_until_its_condition_holds() {
    let replies = [says("Chapter 1."), says("Chapter 2."), says("DONE"), says("Never.")];
    let chat = |more: &str| bounded(more, &replies).run(&LOOPED);
    let done = chat("");
    let expected = "Chapter 1.\nChapter 2.\nDONE\n";
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), expected), "{}", done.stderr);
    let limited = chat("  max-iterations: 2\n");
    assert_eq!(limited.stdout, "Chapter 1.\nChapter 2.\n", "{}", limited.stderr);
    for (more, flags, expected) in [
        ("  until-then: x\n", &[][..], "counter.yaml:5:3: unknown field `until-then`"),
        ("  max-iterations: 0\n", &[], "counter.yaml:5:"),
        ("", &["--session", "s", "--session-dir", "s"], "so --session has no effect"),
        ("", &["--plan"], "so --plan has no effect"),
    ] {
        let ran = bounded(more, &replies).run(&[&LOOPED[..], flags].concat());
        assert_eq!(ran.code, Some(2), "{more}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{more}: {}", ran.stderr);
    }
    let scene = bounded("", &replies);
    let path = scene.path("agents/counter.yaml");
    let agent = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, agent.replace("contains: DONE", "matches: '('")).unwrap();
    let ran = scene.run(&LOOPED);
    assert!(ran.stderr.contains("counter.yaml:4:3: invalid regex in `matches`"), "{}", ran.stderr);
}

#[test]
fn an_iteration_can_wait_for_an_approval() {
    let deletes = calls("file_access_delete_file", json!({"file_name": "a.md"}));
    for (flags, is_deleted, code) in [(&["--yes"][..], true, 0), (&[], false, 4)] {
        let scene = bounded("", &[says("Looked."), deletes.clone(), says("DONE")]);
        let ran = scene.run(&[&LOOPED[..], &["--files", "notes"], flags].concat());
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert_eq!(ran.stdout, "Looked.\nDONE\n", "{}", ran.stderr);
        assert_eq!(scene.has("notes/a.md"), !is_deleted, "{}", ran.stderr);
    }
}

#[test]
fn labels_of_an_iteration_count_in_the_next_one() {
    let saves = calls("file_access_save_file", json!({"file_name": "b.md", "content": "x"}));
    let reads = calls("file_access_read_file", json!({"file_name": "a.md"}));
    for (policy, is_blocked) in [("false", false), ("true", true)] {
        let scene = bounded(
            "  max-iterations: 2\n",
            &[reads.clone(), says("Read."), saves.clone(), says("DONE")],
        );
        let config = format!("[labels]\npolicy = {policy}\nauto-hide-untrusted = false\n");
        std::fs::write(scene.path("c.toml"), config).unwrap();
        let flags = ["--files", "notes", "--config", "c.toml", "--yes"];
        let ran = scene.run(&[&LOOPED[..], &flags].concat());
        assert_eq!(ran.code, Some(if is_blocked { 3 } else { 0 }), "{}", ran.stderr);
        assert_eq!(scene.has("notes/b.md"), !is_blocked, "{}", ran.stderr);
    }
}

#[test]
fn an_agent_of_a_workflow_runs_in_iterations() {
    let scene = bounded("", &[says("Chapter 1."), says("DONE")]);
    std::fs::write(scene.path("w.yaml"), "agents:\n  t: {file: agents/counter.yaml}\n").unwrap();
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache());
    command.env("XDG_STATE_HOME", scene.path("state")).current_dir(scene.path("."));
    command.args(["workflow", "run", "w.yaml", "Go."]).stdin(Stdio::null());
    let done = ran(command.output().unwrap());
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "DONE\n"), "{}", done.stderr);
    let inline = "agents:\n  t:\n    model: script:agents/model.jsonl\n    bounded: {until: {}}\n";
    std::fs::write(scene.path("w.yaml"), inline).unwrap();
    let mut command = Command::new(binary());
    command.env_clear().current_dir(scene.path(".")).args(["workflow", "check", "w.yaml"]);
    let wrong = ran(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("w.yaml:4:14: "), "{}", wrong.stderr);
}
