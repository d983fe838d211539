//! Prompt files of `chat` and of agents.

use super::provider::{hello, server, whole};
use super::*;

const PROMPT: &str = "\
name: story
template: 'Write {{$style}} about {{$input}}.'
input_variables:
  - {name: style, default: a story}
execution_settings:
  m: {temperature: 0.2, max_tokens: 50, model_id: other, function_choice_behavior: {type: none}}
  default: {temperature: 0.7}
";

fn scene(url: &str) -> Scene {
    let scene = Scene::new(&[]);
    let model = |name: &str| {
        format!(
            "[models.{name}]\nprovider = \"openai\"\nmodel = \"{name}-1\"\nbase-url = \"{url}\"\n\
             temperature = 0.9\nseed = 1\n"
        )
    };
    let config = format!("{}default = true\n{}", model("m"), model("n"));
    for (name, text) in [("c.toml", config.as_str()), ("p.yaml", PROMPT), ("style.txt", "a poem")] {
        std::fs::write(scene.path(name), text).unwrap();
    }
    scene
}

#[test]
fn a_prompt_file_has_the_prompt_and_settings_for_the_model() {
    let (url, asked) = server(vec![hello(), hello(), hello()]);
    let scene = scene(&url);
    for (flags, model, temperature, choice, prompt) in [
        (
            &["--prompt-arg", "style=@style.txt"][..],
            "other",
            0.2,
            json!("none"),
            "Write a poem about tides.",
        ),
        (
            &["--model", "m", "--setting", "temperature=0.1"],
            "m-1",
            0.1,
            json!("none"),
            "Write a story about tides.",
        ),
        (&["--model", "n"], "n-1", 0.7, Value::Null, "Write a story about tides."),
    ] {
        let own = ["tides", "--prompt-file", "p.yaml", "--config", "c.toml", "--files", "notes"];
        let ran = scene.run(&[&own[..], flags].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
        let (_, request) = asked.recv().unwrap();
        assert_eq!(request["model"], model, "{request}");
        assert_eq!((&request["temperature"], &request["seed"]), (&json!(temperature), &json!(1)));
        assert_eq!(request["tool_choice"], choice, "{request}");
        let last = request["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["content"].to_string().trim_matches('"'), prompt, "{request}");
    }
}

#[test]
fn a_prompt_file_can_define_an_agent() {
    let (url, asked) = server(vec![hello(), whole()]);
    let scene = scene(&url);
    let agent = "model: m\nprompt-file: p.yaml\nprompt-args: {input: tides}\nsettings: {seed: 2}\n";
    std::fs::write(scene.path("a.yaml"), agent).unwrap();
    std::fs::write(scene.path("w.yaml"), "agents: {a: {file: a.yaml}}\n").unwrap();
    let chat = scene.command(&["hi", "--agent", "a.yaml", "--config", "c.toml"]);
    let flags = ["workflow", "run", "w.yaml", "hi", "--config", "c.toml"];
    let mut workflow = crate::cli_skills::command(&scene.path(""), &flags);
    workflow.env("XDG_STATE_HOME", scene.path("state"));
    for mut command in [chat, workflow] {
        let ran = ran(command.output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
        let (_, request) = asked.recv().unwrap();
        let messages = &request["messages"];
        assert_eq!(messages[0]["content"], "Write a story about tides.", "{request}");
        assert_eq!(request["temperature"], 0.2, "{request}");
        assert_eq!((&request["model"], &request["seed"]), (&json!("m-1"), &json!(2)), "{request}");
    }
}

#[test]
fn what_is_wrong_with_a_prompt_is_named() {
    let scene = scene("http://127.0.0.1:1");
    for (name, text) in [
        ("settings.yaml", "execution_settings: {default: {temperature: warm}}\n"),
        ("misspelled.yaml", "tempalte: x\n"),
        ("agent.yaml", "settings: {temperature: .nan}\n"),
        ("template.yaml", "template: '{{time.now}}'\n"),
        (
            "twice.yaml",
            "model: m\nprompt-file: p.yaml\nprompt-args: {input: x}\ninstructions: Hi.\n",
        ),
        ("alone.yaml", "model: m\nprompt-args: {input: x}\n"),
        ("wrong.yaml", "model: m\nprompt-file: template.yaml\n"),
    ] {
        std::fs::write(scene.path(name), text).unwrap();
    }
    for (flags, expected) in [
        (&["--prompt-file", "p.yaml"][..], "p.yaml: missing arguments of the prompt: input"),
        (
            &["x", "--prompt-file", "p.yaml", "--prompt-arg", "tone=dry"],
            "p.yaml: the prompt has no variable `tone`; variables: input, style",
        ),
        (
            &["x", "--prompt-file", "p.yaml", "--prompt-arg", "style"],
            "--prompt-arg: `style` has no value; expected NAME=VALUE",
        ),
        (
            &["x", "--prompt-file", "p.yaml", "--prompt-arg", "input=y"],
            "both PROMPT and --prompt-arg set the variable `input`",
        ),
        (
            &["x", "--prompt-file", "settings.yaml", "--prompt-arg", "a=b"],
            "the file has no template, so it takes no arguments",
        ),
        (&["x", "--prompt-file", "settings.yaml"], "settings.yaml: `temperature` must be a number"),
        (&["x", "--prompt-file", "misspelled.yaml"], "expected `template` or `execution_settings`"),
        (&["x", "--agent", "agent.yaml"], "expected a finite number, found NaN"),
        (
            &["x", "--prompt-file", "template.yaml"],
            "template.yaml: unsupported tag `{{time.now}}` in line 1",
        ),
        (&["x", "--prompt-file", "none.yaml"], "none.yaml: "),
        (&["x", "--agent", "twice.yaml"], "twice.yaml:4:15: the prompt file has a template"),
        (&["x", "--agent", "alone.yaml"], "alone.yaml: `prompt-args` needs a `prompt-file`"),
        (&["x", "--agent", "wrong.yaml"], "template.yaml: unsupported tag"),
    ] {
        let ran = scene.run(&[flags, &["--config", "c.toml"]].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{flags:?}: {}", ran.stderr);
    }
}
