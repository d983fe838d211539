//! Remote MCP servers in a configuration, through the binary. The remote server is the binary as
//! well, which tests both directions.

mod issuers;
mod login;
mod proxy;
mod scripted;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::wire::Http;

struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|_| panic!("{}{}", self.stdout, self.stderr))
    }
}

/// Folder with a configuration.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cofferdam.toml"), config).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("cofferdam.toml")
    }

    /// Returns the binary with these arguments and `--config`, in an environment of its own.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            .args(arguments)
            .arg("--config")
            .arg(self.config())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    fn check(&self) -> Ran {
        let mut command = Command::new(binary());
        let output =
            command.env_clear().args(["config", "check"]).arg(self.config()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Returns `[servers.far]`: the binary on a pipe, with a plugin. Further keys of the table can
/// follow.
fn far(plugin: &str) -> String {
    let (binary, plugin, cache) = (binary(), guest(plugin), shared_cache());
    format!(
        "[servers.far]\ncommand = [{:?}, \"serve\", \"--plugin\", {:?}]\nenv = \
         {{ COFFERDAM_CACHE_DIR = {:?} }}\n",
        binary, plugin, cache
    )
}

fn names(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn tools_of_a_server_are_listed_and_called_like_those_of_plugins() {
    let scene =
        Scene::new(&format!("{}[plugins.text]\ncomponent = {:?}\n", far("served"), guest("text")));
    let listed = scene.run(&["list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("\nfar  (server)\n  echo"), "{}", listed.stdout);
    let listed = scene.run(&["list", "--json"]).json();
    let echo = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(
        (&echo["server"], &echo["input_schema"]["required"]),
        (&json!("far"), &json!(["message"]))
    );
    assert_eq!(echo["plugin"], Value::Null);

    let called = scene.run(&["call", "echo", r#"{"message":"hi","more":1}"#, "--json"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let called = called.json();
    assert_eq!(called["result"], json!({"echoed": {"message": "hi"}}), "{called}");
    assert_eq!(
        called["record"]["dropped"],
        json!(["more"]),
        "what is not declared does not leave: {called}"
    );

    let failed = scene.run(&["call", "refuse", "{}"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let envelope = r#"{"error":{"message":"there is no such row","#;
    assert!(failed.stdout.starts_with(envelope), "wrapped once: {}", failed.stdout);
    let dry = scene.run(&["call", "echo", r#"{"message":"hi"}"#, "--dry-run"]);
    assert_eq!((dry.code, dry.stdout.as_str()), (2, ""), "a server would do it all the same");
    // The server checks arguments.
    let wrong = scene.run(&["call", "echo", "{}"]);
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(wrong.stdout.contains("message"), "{}", wrong.stdout);

    let schema = scene.run(&["args", "--tool", "echo", "--dialect", "mcp"]);
    assert!(schema.stdout.contains("\"message\""), "{}{}", schema.stdout, schema.stderr);
    std::fs::write(
        scene.path("script"),
        r#"{"calls":[{"tool":"echo","arguments":{"message":"far"}},{"tool":"word_count","arguments":{"text":"a b"}}]}"#,
    )
    .unwrap();
    let played = scene.run(&["play", scene.path("script").to_str().unwrap()]);
    assert!(
        played.stdout.contains(r#"{"echoed":{"message":"far"}}"#)
            && played.stdout.contains("\"words\":2"),
        "{}{}",
        played.stdout,
        played.stderr
    );
}

#[test]
fn a_span_of_a_call_of_a_server_has_the_attributes_of_its_request() {
    let records = "[records]\nenabled = true\ndirectory = \"log\"\n";
    let scene = Scene::new(&format!("{}{records}", far("served")));
    let called = scene.run(&["call", "echo", r#"{"message":"hi"}"#, "--record"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let exported = scene.run(&["log", "export", "--format", "otlp"]).json();
    let span = &exported["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    let attribute = |name: &str| {
        let list = span["attributes"].as_array().unwrap();
        let found = list.iter().find(|attribute| attribute["key"] == name);
        found.map_or(Value::Null, |attribute| attribute["value"]["stringValue"].clone())
    };
    assert_eq!((&span["name"], &span["kind"]), (&json!("execute_tool echo"), &json!(3)));
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
        ("network.transport", "pipe"),
        ("cofferdam.mcp.server", "far"),
        ("gen_ai.operation.name", "execute_tool"),
    ] {
        assert_eq!(attribute(name), value, "{name} of {span}");
    }
    let id = attribute("cofferdam.record.id");
    let shown = scene.run(&["log", "show", id.as_str().unwrap()]);
    assert!(shown.stdout.contains("request    tools/call (pipe, 2026-07-28)"), "{}", shown.stdout);
}

#[test]
fn a_header_of_a_secret_lets_in_over_http_and_the_secret_does_not_come_back() {
    let remote = Http::start(&["served"]);
    let config = |file: &Path| {
        format!(
            "[secrets]\ntoken = {{ file = {file:?} }}\n[servers.far]\nurl = \"http://{}/mcp\"\n\
             headers = {{ Authorization = \"Bearer ${{secret:token}}\" }}\n",
            remote.address
        )
    };
    let scene = Scene::new(&config(&remote.token_file()));
    let arguments = json!({"message": format!("it is {}!", remote.token)}).to_string();
    let called = scene.run(&["call", "echo", &arguments, "--json"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert_eq!(called.json()["result"], json!({"echoed": {"message": "it is [secret token]!"}}));
    assert!(!called.stdout.contains(&remote.token) && !called.stderr.contains(&remote.token));
    assert_eq!(called.json()["record"]["hosts"][0]["host"], "127.0.0.1");

    let wrong = scene.path("wrong");
    std::fs::write(&wrong, "not-the-right-token").unwrap();
    std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(scene.config(), config(&wrong)).unwrap();
    let refused = scene.run(&["call", "echo", &arguments]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("the server `far` cannot be reached"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("not-the-right-token"), "{}", refused.stderr);
    // The secret is read only to connect.
    std::fs::remove_file(&wrong).unwrap();
    assert_eq!(scene.check().code, 0);
    assert_eq!(scene.run(&["list"]).code, 2);
}

#[test]
fn a_server_that_is_not_there_affects_no_other() {
    let config = "[servers.gone]\nurl = \"http://127.0.0.1:9/mcp\"\n[servers.silent]\ncommand = [\"false\"]\n\
                  [servers.slow]\ncommand = [\"sleep\", \"60\"]\nlimits = \
                  { connect-ms-max = 300 }\n";
    let config = format!("{config}env = {{ PATH = \"/usr/bin:/bin\" }}\n");
    let config =
        config.replace("[\"false\"]\n", "[\"false\"]\nenv = { PATH = \"/usr/bin:/bin\" }\n");
    let scene = Scene::new(&format!("{config}[plugins.text]\ncomponent = {:?}\n", guest("text")));
    let listed = scene.run(&["list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("word_count"));
    for (server, why) in [
        ("gone", "there is no connection: Connection refused"),
        ("silent", "the server ended before it answered"),
        ("slow", "the server did not answer within 300 ms"),
    ] {
        let note = format!("warning: the server `{server}` cannot be reached: {why}");
        assert!(listed.stderr.contains(&note), "{}", listed.stderr);
    }
    assert_eq!(scene.run(&["call", "word_count", r#"{"text":"a"}"#]).code, 0);
    let missing = scene.run(&["call", "far_tool"]);
    assert_eq!(missing.code, 4);
    assert!(
        missing.stderr.contains("it may be a tool of `gone`, `silent`, `slow`"),
        "{}",
        missing.stderr
    );
}

#[test]
fn allowed_tools_and_a_prefix_make_the_names() {
    let scene =
        Scene::new(&format!("{}tools = [\"echo\", \"nosuch\"]\nprefix = \"up.\"\n", far("served")));
    assert_eq!(names(&scene.run(&["list", "--json"]).json()), ["up_echo"]);
    assert_eq!(scene.run(&["call", "up_echo", r#"{"message":"hi"}"#]).code, 0);
    assert_eq!(scene.run(&["call", "echo", r#"{"message":"hi"}"#]).code, 2);
    // Names that two sources use are prefixed with their source.
    let scene = Scene::new(&format!(
        "{}[plugins.near]\ncomponent = {:?}\n",
        far("served"),
        guest("served")
    ));
    let listed = scene.run(&["list", "--json"]).json();
    assert!(
        names(&listed).contains(&"far_echo") && names(&listed).contains(&"near_echo"),
        "{listed}"
    );
    assert_eq!(scene.run(&["call", "far_echo", r#"{"message":"hi"}"#]).code, 0);
}

#[test]
fn what_needs_approval_is_not_called_without() {
    let scene = Scene::new(&format!("{}approval = {{ always = [\"echo\"] }}\n", far("served")));
    let call = ["call", "echo", r#"{"message":"hi"}"#];
    let asked = scene.run(&call);
    assert_eq!((asked.code, asked.stdout.as_str()), (4, ""));
    assert!(
        asked.stderr.contains(
            "`echo` of the server `far` has to be approved, and there is no terminal to ask at; \
             pass --yes"
        ),
        "{}",
        asked.stderr
    );
    assert_eq!(scene.run(&[&call[..], &["--yes"]].concat()).code, 0);
    assert_eq!(scene.run(&["call", "refuse", "{}"]).code, 1, "it is not in the list");
    let script = scene.path("script");
    std::fs::write(&script, r#"{"calls":[{"tool":"echo","arguments":{"message":"hi"}}]}"#).unwrap();
    let script = script.to_str().unwrap();
    assert!(scene.run(&["play", script]).stdout.contains("error  each call of `echo`"));
    assert!(scene.run(&["play", script, "--yes"]).stdout.contains("echoed"));
}

#[test]
fn a_plugin_calls_a_tool_of_a_server_that_it_was_granted() {
    let plugin =
        |grants: &str| format!("[plugins.stores]\ncomponent = {:?}\n{grants}", guest("stores"));
    let inner = r#"{"message":"inner"}"#;
    let arguments = crate::script::arguments(&[&["call", "echo", inner]]);
    let answer = |scene: &Scene| {
        let called = scene.run(&["call", "stores", &arguments]);
        crate::script::answers(called.stdout.trim_end()).remove(0)
    };
    let granted = "grants.tools = [\"echo\"]\n";
    let scene = Scene::new(&format!("{}{}", far("served"), plugin(granted)));
    assert!(answer(&scene).contains(r#"{"echoed":{"message":"inner"}}"#), "{}", answer(&scene));
    let scene = Scene::new(&format!("{}{}", far("served"), plugin("")));
    assert_eq!(answer(&scene), "Error::UnknownTool");
    // Plugins cannot use tools that need approval.
    let scene = Scene::new(&format!("{}approval = \"always\"\n{}", far("served"), plugin(granted)));
    assert!(answer(&scene).contains("CapabilityDenied"), "{}", answer(&scene));
}

#[test]
fn a_configuration_that_is_wrong_says_where() {
    for (config, message) in [
        ("[servers.a]\nurls = 1\n", ":2:1: unknown field `urls`"),
        ("[servers.a]\nprefix = \"x\"\n", ":1:1: server `a`: write either `command` or `url`"),
        ("[servers.a]\nurl = \"ftp://a.example\"\n", ":2:7: the address begins with"),
        (
            "[servers.a]\nurl = \"http://a.example\"\nheaders = { A = \"b\" }\n",
            ":2:7: secrets are sent only over https",
        ),
        ("[servers.a]\ncommand = []\n", ":2:11: write the program"),
        (
            "[servers.a]\ncommand = [\"x\"]\nheaders = { A = \"b\" }\n",
            ":3:13: a program gets no headers",
        ),
        ("[servers.a]\nurl = \"https://a.example\"\nenv = { A = \"b\" }\n", ":3:9: `env` is for"),
        (
            "[servers.a]\nurl = \"https://a.example\"\nheaders = { A = { secret = \"x\" } }\n",
            ":1:1: [servers.a] names the secret `x`",
        ),
        (
            "[servers.a]\nurl = \"https://a.example\"\noauth = { machine = true }\n",
            ":3:9: with `machine = true`",
        ),
        (
            "[servers.a]\nurl = \"https://a.example\"\nlimits = { wall-ms-max = 0 }\n",
            ":1:1: server `a`: a limit of 0",
        ),
        (
            "[servers.a]\nurl = \"https://a.example\"\napproval = \"maybe\"\n",
            ":3:12: write \"always\"",
        ),
        ("[servers.'a b']\nurl = \"https://a.example\"\n", "server `a b`: "),
    ] {
        let checked = Scene::new(config).check();
        assert_eq!(checked.code, 2, "{config}: {}", checked.stdout);
        assert!(checked.stderr.contains(message), "{config}: {}", checked.stderr);
    }
}

#[test]
fn config_check_says_what_a_server_is_and_may() {
    let scene = Scene::new(
        "[servers.a]\nurl = \"https://a.example/mcp\"\ntools = [\"read\"]\napproval = \"always\"\nask = false\n\
         [servers.b]\ncommand = [\"npx\", \"docs\"]\nenv = { TOKEN = \"t\" }\n",
    );
    let checked = scene.check();
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert_eq!(
        checked.stdout,
        "a  https://a.example/mcp\n  offers read\n  each call has to be approved\n  each call has 600000 ms\n\
         b  runs npx docs\n  runs with all rights of your user, outside of any sandbox\n  is \
         given the variables TOKEN\n  \
         offers all its tools\n  no call has to be approved\n  may ask the caller\n  \
         each call has 600000 ms\n"
    );
    assert!(checked.stderr.contains("0 plugins, 2 servers"), "{}", checked.stderr);
}

#[test]
fn a_host_of_mcp_gets_the_variables_that_servers_need() {
    let scene = Scene::new(
        "[servers.a]\nurl = \"https://a.example/mcp\"\nheaders = { A = { env = \"KEY_OF_A\" }, B = \"${secret:b}\" }\n\
         [secrets]\nb = { env = \"KEY_OF_B\" }\n",
    );
    let config = scene.run(&["mcp", "config", "--host", "claude"]);
    assert_eq!(config.code, 0, "{}", config.stderr);
    assert!(config.stderr.contains("KEY_OF_A, KEY_OF_B"), "{}", config.stderr);
    std::fs::write(scene.config(), "[servers.a]\ncommand = [\"./server\"]\n").unwrap();
    let out = scene.path("a.mcpb");
    let refused = scene.run(&["mcp", "bundle", out.to_str().unwrap()]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(":2:11: the server `a` is a program of this machine"),
        "{}",
        refused.stderr
    );
}

#[test]
fn no_plugin_may_write_the_program_of_a_server() {
    for line in [
        "command = [\"work/server\"]",
        "command = [\"python3\", \"WORK/server\"]",
        "command = [\"x\"]\ndirectory = \"work\"",
    ] {
        let scene = Scene::new("");
        std::fs::create_dir(scene.path("work")).unwrap();
        std::fs::write(scene.path("work/server"), "").unwrap();
        let line = line.replace("WORK", scene.path("work").to_str().unwrap());
        let config = |access: &str| {
            format!(
                "[servers.far]\n{line}\n[stores.work]\ndirectory = \"work\"\n[plugins.text]\ncomponent = {:?}\n\
                 grants.files.work = \"{access}\"\n",
                guest("text")
            )
        };
        std::fs::write(scene.config(), config("read-write")).unwrap();
        let checked = scene.check();
        assert_eq!(checked.code, 2, "{line}: {}", checked.stdout);
        assert!(
            checked.stderr.contains("which decides what a plugin may do"),
            "{}",
            checked.stderr
        );
        std::fs::write(scene.config(), config("read-only")).unwrap();
        assert_eq!(scene.check().code, 0);
    }
}
