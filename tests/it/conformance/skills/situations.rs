//! Rows that describe a situation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cofferdam_agent::{Agent, Clock, Reply, ScriptedClient};
use cofferdam_files::{Access, AccessKind, AuditedStore, FileStore};
use cofferdam_skills::{ProgramSkill, SkillRoot, SkillTool, Skills};
use cofferdam_tool::{Limits, Toolset};
use serde_json::{Map, Value, json};

use super::world::{Folder, components, components_within, fixture, script};
use super::{built, call, compare, compare_ran, members, names, object};
use crate::conformance::{Row, expect_same};
use crate::module::{Answer, Item, Module};

/// Checks the instructions and tools that a model gets in a run.
pub(super) async fn offered(row: &Row) -> Result<(), String> {
    let mut builder = Skills::builder();
    let fixture = fixture();
    let named = |name: &str, description: &str| {
        ProgramSkill::new(name, description, "").map_err(|error| error.to_string())
    };
    match row.value.get("skills") {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::Bool(true)) => builder = builder.root(fixture.folder.root()),
        Some(Value::Number(count)) => {
            for number in 0..count.as_u64().ok_or("`skills` is not a count")? {
                builder = builder.skill(named(&format!("s{number}"), "a skill")?);
            }
        }
        Some(Value::Array(names)) => {
            for name in names {
                builder =
                    builder.skill(named(name.as_str().ok_or("a name is not text")?, "a skill")?);
            }
        }
        Some(Value::Object(skills)) => {
            for (name, description) in skills {
                builder = builder.skill(named(name, description.as_str().unwrap_or("a skill"))?);
            }
        }
        Some(other) => return Err(format!("unknown `skills` {other}")),
    }
    let skills = built(builder)?;
    let model = ScriptedClient::new([Reply::text("done")]).recording();
    let agent = Agent::builder(model.clone())
        .context_provider(skills)
        .build()
        .map_err(|error| error.to_string())?;
    agent.run("hi").await.map_err(|error| error.to_string())?;
    let requests = model.requests();
    let request = requests.first().ok_or("the model was not asked")?;
    let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    let instructions = request.options.instructions.as_deref();
    if row.expect.is_array() {
        return expect_same("tools", &row.expect, &json!(tools));
    }
    for (key, expected) in object(&row.expect)? {
        let got = match (key.as_str(), expected) {
            ("tools", Value::Number(_)) => json!(tools.len()),
            ("tools", Value::Null) if tools.is_empty() => Value::Null,
            ("tools", Value::Bool(_)) => json!(!tools.is_empty()),
            ("tools", _) => json!(tools),
            ("instructions" | "available_skills", Value::Bool(_)) => json!(instructions.is_some()),
            ("instructions", Value::Null) => json!(instructions),
            ("instructions", Value::String(part)) => {
                let text = instructions.unwrap_or_default();
                let holds =
                    if part.is_empty() { text.is_empty() } else { text.contains(part.as_str()) };
                json!(if holds { part } else { text })
            }
            ("instructions", Value::Array(parts)) if parts.is_empty() => {
                json!(Vec::from_iter(instructions))
            }
            _ => return Err(format!("unknown key `{key}` in `expect`")),
        };
        expect_same(key, expected, &got)?;
    }
    Ok(())
}

/// Runs a script instead of `scripts/run.wasm`, in the engine.
pub(super) async fn component_script(row: &Row) -> Result<(), String> {
    let files = "import cofferdam:plugin/files@0.1.0;";
    let (module, limits) = match row.text("does")? {
        "divides by zero" => {
            let body = "(drop (i32.div_s (i32.const 1) (i32.load (i32.const 900))))";
            (Module { body, ..Module::default() }, Limits::default())
        }
        "loops for ever" => {
            let limits = Limits { cpu_ms_max: 100, ..Limits::default() };
            (Module { body: "(loop $again (br $again))", ..Module::default() }, limits)
        }
        // The interface of files reports a refusal as a value where it can, and the guest goes on.
        // This guest does something that can only be stopped.
        "opens a file outside the skill and is stopped" => {
            let module = Module {
                wit: "
                    package wasi:sockets@0.2.0;
                    interface network { resource network; }
                    interface instance-network { use network.{network}; instance-network: func() -> network; }",
                world: "import cofferdam:plugin/files@0.1.0; import \
                    wasi:sockets/instance-network@0.2.0;",
                imports: r#"
                    (import "cofferdam:plugin/files@0.1.0" "read"
                      (func $read (param i32 i32 i32 i32 i64 i64 i32)))
                    (import "wasi:sockets/instance-network@0.2.0" "instance-network"
                      (func $network (result i32)))"#,
                fields: r#"(data (i32.const 300) "outsidesecret.md")"#,
                body: "
                    (call $read (i32.const 300) (i32.const 7) (i32.const 307) (i32.const 9)
                      (i64.const 0) (i64.const 100) (i32.const 512))
                    (if (i32.ne (i32.load8_u (i32.const 512)) (i32.const 0)) (then (drop (call $network))))",
                answer: Answer::Contents(vec![Item::Text(b"has read it")]),
                ..Module::default()
            };
            (module, Limits::default())
        }
        "writes into the skill directory" => {
            let module = Module {
                world: files,
                imports: r#"
                    (import "cofferdam:plugin/files@0.1.0" "write"
                      (func $write (param i32 i32 i32 i32 i32 i32 i32 i32)))"#,
                fields: r#"(data (i32.const 300) "skillroot.txt")"#,
                body: "
                    (call $write (i32.const 300) (i32.const 5) (i32.const 305) (i32.const 8)
                      (i32.const 300) (i32.const 5) (i32.const 1) (i32.const 512))
                    (if (i32.eqz (i32.load8_u (i32.const 512))) (then (unreachable)))",
                answer: Answer::Contents(vec![Item::Json(r#"{"denied":true}"#)]),
                ..Module::default()
            };
            (module, Limits::default())
        }
        other => return Err(format!("unknown situation `{other}`")),
    };
    let fixture = fixture();
    fixture.folder.write("alpha/scripts/run.wasm", &script(module).component());
    let skills =
        built(Skills::builder().root(fixture.folder.root()).runner(components_within(limits)))?;
    let args = json!({"skill_name": "alpha", "script_name": "scripts/run.wasm"});
    let ran = call(&toolset(&skills).await?, SkillTool::RunScript.name(), &args).await?;
    let tried_outside = ran.refused.iter().any(|refused| refused == "files:outside=read-only");
    if row.text("does")?.starts_with("opens a file") && !tried_outside {
        return Err(format!("the file was not asked for; refused: {:?}", ran.refused));
    }
    let mut expect = members(row.expect.clone());
    if let Some(expected) = expect.remove("denied") {
        let is_as_it_was =
            std::fs::read(fixture.folder.path("alpha/root.txt")).is_ok_and(|text| text == b"ROOT");
        let denied =
            ran.json().ok().and_then(|json| json.get("denied").cloned()).unwrap_or_default();
        expect_same("denied", &expected, &json!(denied == true && is_as_it_was))?;
    }
    compare_ran(&Value::Object(expect), &ran, None)
}

async fn toolset(skills: &Skills) -> Result<Toolset, String> {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(skills.tools().await)).map_err(|error| error.to_string())?;
    Ok(toolset)
}

/// Replaces a part of a skill by a link after the skill was found.
pub(super) async fn swap(row: &Row) -> Result<(), String> {
    let fixture = fixture();
    let tools = fixture.tools(Skills::builder()).await?;
    let folder = &fixture.folder;
    folder.write("elsewhere/guide.md", b"SECRET");
    let (moved, target) = match row.text("what")? {
        "resource replaced by a link after discovery" => {
            ("alpha/references/guide.md", "elsewhere/guide.md")
        }
        "directory replaced by a link after discovery" => ("alpha/references", "elsewhere"),
        other => return Err(format!("unknown situation `{other}`")),
    };
    std::fs::rename(folder.path(moved), folder.path("moved")).map_err(|error| error.to_string())?;
    folder.link(moved, target);
    let tool = row.get("tool").and_then(Value::as_str).unwrap_or(SkillTool::ReadResource.name());
    let args = json!({"skill_name": "alpha", "resource_name": "references/guide.md"});
    let ran = call(&tools, tool, row.get("args").unwrap_or(&args)).await?;
    if ran.text.contains("SECRET") {
        return Err("the link was followed".to_owned());
    }
    compare_ran(&row.expect, &ran, None)
}

/// Checks that `allowed-tools` is shown and approves nothing.
pub(super) async fn allowed_tools(row: &Row) -> Result<(), String> {
    let lists = match row.required("skill_lists")? {
        Value::String(text) => text.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        other => return Err(format!("unknown `skill_lists` {other}")),
    };
    let folder = Folder::default();
    let text = format!("---\nname: s\ndescription: d\nallowed-tools: {}\n---\n", json!(lists));
    folder.write("s/SKILL.md", text.as_bytes());
    let skills = built(Skills::builder().root(folder.root()).runner(components()))?;
    let list = skills.list().await;
    let shown = list.find("s").ok_or("the skill is not found")?.allowed_tools().map(str::to_owned);
    if shown.as_deref() != Some(&lists) {
        return Err(format!("expected {lists:?} to be shown, got {shown:?}"));
    }
    let tools = toolset(&skills).await?;
    // Tools that are listed and could be called without approval.
    let granted: Vec<_> = lists
        .split_whitespace()
        .filter(|name| tools.definition(name).is_ok() && !tools.needs_approval(name))
        .collect();
    let needed = needed(&tools);
    compare(
        &row.expect,
        &members(json!({
            "granted": granted,
            "shown": shown,
            "allowed_tools": shown,
            "needs_approval": needed,
        })),
    )
}

/// Counts how often skills are searched, and checks whether a later one is found.
pub(super) async fn caching(row: &Row) -> Result<(), String> {
    let number =
        |names: &[&str]| names.iter().find_map(|name| row.get(name)).and_then(Value::as_f64);
    let seconds = |of: &str| {
        let in_ms = number(&[&format!("{of}_ms")]).map(|ms| ms / 1000.0);
        in_ms
            .or(number(&[of, &format!("{of}_s"), &format!("{of}_seconds")]))
            .map(Duration::from_secs_f64)
    };
    let refresh = ["refresh", "refresh_interval", "interval"].iter().find_map(|name| seconds(name));
    let refresh =
        refresh
            .or((row.flag("refresh") || row.flag("refresh_interval"))
                .then_some(Duration::from_secs(1)));
    let elapsed = ["elapsed", "after", "wait", "later"].iter().find_map(|name| seconds(name));
    let uses = number(&["uses", "runs", "calls", "reads", "times", "lists"]).unwrap_or(2.0) as u64;
    let folder = Folder::default();
    folder.write("first/SKILL.md", b"---\nname: first\ndescription: d\n---\n");
    let looked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looked);
    // Each search lists the root once.
    let audited = AuditedStore::new(folder.store(), move |access: &Access<'_>| {
        if access.kind == AccessKind::List && access.path.is_root() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let clock = TestClock::default();
    let store: Arc<dyn FileStore> = Arc::new(audited);
    let mut builder = Skills::builder().root(SkillRoot::new(store)).clock(clock.clone());
    if let Some(refresh) = refresh {
        builder = builder.refresh_every(refresh);
    }
    let skills = built(builder)?;
    let first: Vec<_> = names(&*skills.list().await).iter().map(ToString::to_string).collect();
    folder.write("second/SKILL.md", b"---\nname: second\ndescription: d\n---\n");
    let mut last = first.clone();
    for _ in 1..uses.max(1) {
        clock.pass(elapsed.or(refresh).unwrap_or(Duration::from_secs(3600)));
        last = names(&*skills.list().await).iter().map(ToString::to_string).collect();
    }
    let looked = looked.load(Ordering::Relaxed);
    let is_new_seen = last.len() > first.len();
    let mut got = Map::new();
    for key in [
        "reads",
        "discoveries",
        "searches",
        "loads",
        "times_read",
        "list_reads",
        "listings",
        "read",
    ] {
        got.insert(key.into(), json!(looked));
    }
    for key in [
        "new_skill_seen",
        "sees_new",
        "seen",
        "sees_new_skill",
        "reread",
        "refreshed",
        "new_seen",
        "changed",
    ] {
        got.insert(key.into(), json!(is_new_seen));
    }
    for key in ["cached", "same", "read_once"] {
        got.insert(key.into(), json!(!is_new_seen));
    }
    for key in ["names", "skills", "second", "after", "last"] {
        got.insert(key.into(), json!(last));
    }
    for key in ["first", "before"] {
        got.insert(key.into(), json!(first));
    }
    compare(&row.expect, &got)
}

/// Clock that is advanced by hand.
#[derive(Clone)]
struct TestClock(Arc<Mutex<Instant>>);

impl Default for TestClock {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl TestClock {
    fn pass(&self, time: Duration) {
        *self.0.lock().expect("no holder panics") += time;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        *self.0.lock().expect("no holder panics")
    }
}

pub(super) async fn approval(row: &Row) -> Result<(), String> {
    let mut builder = Skills::builder();
    match row.value.get("freed") {
        None | Some(Value::Null) => {}
        Some(Value::Array(freed)) => {
            for name in freed {
                let name = name.as_str().ok_or("a tool is not text")?;
                builder =
                    builder
                        .without_approval([SkillTool::named(name)
                            .ok_or_else(|| format!("unknown tool `{name}`"))?]);
            }
        }
        Some(Value::String(word)) => match word.as_str() {
            "reading" | "reading tools" | "the two reading tools" | "read_only" => {
                builder = builder.free_reading()
            }
            "all" => builder = builder.without_approval(SkillTool::ALL),
            name => {
                builder =
                    builder
                        .without_approval([SkillTool::named(name)
                            .ok_or_else(|| format!("unknown word `{name}`"))?]);
            }
        },
        Some(other) => return Err(format!("unknown `freed` {other}")),
    }
    let tools = fixture().tools(builder).await?;
    let free: Vec<_> = SkillTool::ALL
        .iter()
        .map(|tool| tool.name())
        .filter(|name| !tools.needs_approval(name))
        .collect();
    compare(
        &row.expect,
        &members(json!({"needs_approval": needed(&tools), "free": free, "freed": free})),
    )
}

fn needed(tools: &Toolset) -> Vec<&str> {
    let names = tools.definitions().map(|tool| tool.name.as_str());
    names.filter(|name| tools.needs_approval(name)).collect()
}
