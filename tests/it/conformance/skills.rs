//! Rows of `skills.jsonl`: parsing skills, finding them, and the answers of their tools. Scripts
//! are components that run in the engine; lists are read from directories of the host.

mod situations;
mod world;

use std::sync::Arc;

use cofferdam_files::{FileStore, MemoryStore, Quota, StorePath, WriteMode};
use cofferdam_skills::{
    InvalidSkill, ProgramSkill, Skill, SkillList, SkillRoot, Skills, check_compatibility,
    check_description, check_name,
};
use cofferdam_tool::{CallContext, RefusedCall, Toolset};
use serde_json::{Map, Value, json};

use self::world::{Folder, Ran, components, run as block_on};
use super::{Row, expect_same, same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    block_on(async {
        match row.op.as_str() {
            "name" => checked(row, check_name(row.text("name")?)),
            "description" => description(row),
            "compatibility" => checked(row, check_compatibility(&"x".repeat(length(row)?))),
            "parse" => parse(row).await,
            "discover" => discover(row).await,
            "discover_names" => discover_names(row).await,
            "duplicates" => duplicates(row).await,
            "tools" => tools(row).await,
            "advertised" => advertised(row),
            "tool" => tool(row).await,
            "offered" => situations::offered(row).await,
            "component_script" => situations::component_script(row).await,
            "swap" => situations::swap(row).await,
            "allowed_tools" => situations::allowed_tools(row).await,
            "caching" => situations::caching(row).await,
            "approval" => situations::approval(row).await,
            other => Err(format!("unknown operation `{other}`")),
        }
    })
}

/// Compares every key of `expect`; a key that `got` does not have is unknown.
fn compare(expect: &Value, got: &Map<String, Value>) -> Result<(), String> {
    for (key, expected) in object(expect)? {
        let got = got.get(key).ok_or_else(|| format!("unknown key `{key}` in `expect`"))?;
        expect_same(key, expected, got)?;
    }
    Ok(())
}

fn checked(row: &Row, checked: Result<(), InvalidSkill>) -> Result<(), String> {
    let error = checked.as_ref().err().map(ToString::to_string);
    compare(
        &row.expect,
        &Map::from_iter([("ok".into(), json!(checked.is_ok())), ("error".into(), json!(error))]),
    )
}

fn length(row: &Row) -> Result<usize, String> {
    let length = row.required("length")?.as_u64().and_then(|length| usize::try_from(length).ok());
    length.ok_or_else(|| "`length` is not a length".to_owned())
}

fn description(row: &Row) -> Result<(), String> {
    let name = row.get("name").and_then(Value::as_str).unwrap_or("a");
    let text = if row.flag("blank") { " " } else { "x" };
    checked(row, check_description(name, &text.repeat(length(row)?)))
}

/// Parses one `SKILL.md` from a store in memory and from a directory of the host.
async fn parse(row: &Row) -> Result<(), String> {
    let (text, directory) = (row.text("skill_md")?, row.text("dir_name")?);
    let memory = MemoryStore::new(Quota::default());
    if let Ok(path) =
        StorePath::ROOT.child(directory).and_then(|directory| directory.child("SKILL.md"))
    {
        memory
            .write(&path, text.into(), WriteMode::Create)
            .await
            .map_err(|error| error.to_string())?;
    }
    let folder = Folder::default();
    folder.write(&format!("{directory}/SKILL.md"), text.as_bytes());
    for root in [SkillRoot::new(Arc::new(memory)), folder.root()] {
        let list = built(Skills::builder().root(root))?.list().await;
        let found: Vec<_> = list.skills().iter().map(parsed).collect::<Result<_, _>>()?;
        for (key, expected) in object(&row.expect)? {
            match (key.as_str(), expected) {
                ("skills", Value::Array(expected)) => each_same(expected, &found)?,
                ("valid" | "ok", expected) => expect_same(key, expected, &json!(found.len() == 1))?,
                _ => return Err(format!("unknown key `{key}` in `expect`")),
            }
        }
    }
    Ok(())
}

/// Compares lists of objects by the expected members.
fn each_same(expected: &[Value], found: &[Map<String, Value>]) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("expected {}, got {}", json!(expected), json!(found)));
    }
    expected.iter().zip(found).try_for_each(|(expected, found)| compare(expected, found))
}

fn parsed(skill: &Skill) -> Result<Map<String, Value>, String> {
    let Skill::File(skill) = skill else { return Err("not a file".to_owned()) };
    let front = skill.front_matter();
    Ok(members(json!({
        "name": front.name,
        "description": front.description,
        "license": front.license,
        "compatibility": front.compatibility,
        "allowed_tools": front.allowed_tools,
        "metadata": front.metadata,
    })))
}

async fn discover(row: &Row) -> Result<(), String> {
    let folder = Folder::of_tree(row.required("tree")?, &row.expect)?;
    let mut builder = Skills::builder().root(folder.root()).runner(components());
    // Runners that the embedding program adds.
    if let Some(runners) = row.get("runners").or(row.get("extensions")) {
        builder = builder.runner(world::Added::of(runners)?);
    }
    let list = built(builder)?.list().await;
    let found: Vec<_> = list.skills().iter().map(listed).collect();
    match &row.expect {
        Value::Array(expected) => each_same(expected, &found),
        other => Err(format!("not a list: {other}")),
    }
}

fn listed(skill: &Skill) -> Map<String, Value> {
    members(json!({
        "name": skill.name(),
        "description": skill.description(),
        "resources": skill.resources(),
        "scripts": skill.scripts(),
    }))
}

async fn discover_names(row: &Row) -> Result<(), String> {
    let folder = Folder::of_tree(row.required("tree")?, &row.expect)?;
    let list = built(Skills::builder().root(folder.root()))?.list().await;
    let names = names(&list).into_iter().map(|name| match name == folder.name() {
        // The rows' fixed word for a root that is itself a skill.
        true if row.expect.as_array().is_some_and(|names| names.contains(&json!("<root>"))) => {
            "<root>"
        }
        _ => name,
    });
    expect_same("names", &row.expect, &json!(names.collect::<Vec<_>>()))
}

/// Searches one root or several. The description of each skill is its path, which identifies the
/// one that was loaded.
async fn duplicates(row: &Row) -> Result<(), String> {
    let trees = ["roots", "trees"].into_iter().find_map(|name| row.get(name));
    let trees = match trees.or(row.get("tree")) {
        None => return Err("the row has no `roots` and no `tree`".to_owned()),
        Some(Value::Array(trees)) if trees.iter().all(Value::is_string) => vec![json!(trees)],
        Some(Value::Array(trees)) => trees.clone(),
        Some(Value::Object(trees)) => trees.values().cloned().collect(),
        Some(other) => return Err(format!("not a tree: {other}")),
    };
    let folders: Vec<_> =
        trees.iter().map(|tree| Folder::of_tree(tree, &row.expect)).collect::<Result<_, _>>()?;
    let mut builder = Skills::builder();
    for folder in &folders {
        builder = builder.root(folder.root());
    }
    let list = built(builder)?.list().await;
    let kept: Vec<_> = list.skills().iter().map(kept).collect::<Result<_, _>>()?;
    let expected = match &row.expect {
        Value::Object(expect) if expect.len() == 1 => expect
            .get("kept")
            .or(expect.get("skills"))
            .or(expect.get("names"))
            .ok_or("unknown key in `expect`")?,
        other => other,
    };
    if expected == "first root" {
        let roots: Vec<_> = kept.iter().map(|kept| kept["root"].clone()).collect();
        return expect_same("roots", &json!([0]), &json!(roots));
    }
    let column = |name: &str| json!(kept.iter().map(|kept| kept[name].clone()).collect::<Vec<_>>());
    match expected {
        Value::Array(expected) if expected.iter().all(Value::is_object) => {
            each_same(expected, &kept)
        }
        // A list of names or of paths.
        Value::Array(_) => {
            let columns = ["name", "path", "file"].map(column);
            let is_one = columns.iter().any(|column| same(expected, column));
            is_one
                .then_some(())
                .ok_or_else(|| format!("expected {expected}, got one of {columns:?}"))
        }
        Value::String(_) if kept.len() == 1 => {
            let is_one =
                ["path", "file", "name"].iter().any(|name| same(expected, &kept[0][*name]));
            is_one.then_some(()).ok_or_else(|| format!("expected {expected}, got {:?}", kept[0]))
        }
        _ => compare(expected, kept.first().ok_or("nothing is kept")?),
    }
}

fn kept(skill: &Skill) -> Result<Map<String, Value>, String> {
    let Skill::File(file) = skill else { return Err("not a file".to_owned()) };
    let path = file.directory().to_string();
    Ok(members(json!({
        "name": skill.name(),
        "root": file.root(),
        "file": format!("{path}/SKILL.md"),
        "path": path,
        "description": skill.description(),
        "resources": skill.resources(),
        "scripts": skill.scripts(),
    })))
}

/// Checks the three tools as a model sees them.
async fn tools(row: &Row) -> Result<(), String> {
    let tools = world::fixture().tools(Skills::builder()).await?;
    let describe = |tool: &Arc<cofferdam_tool::ToolDefinition>| {
        let mut described = described(tool.name.as_str(), tool.input.published());
        described.insert("needs_approval".into(), tools.needs_approval(tool.name.as_str()).into());
        described
    };
    let tools: Vec<_> = tools.definitions().map(describe).collect();
    let expected = match &row.expect {
        Value::Object(expect) if expect.contains_key("tools") && expect.len() == 1 => {
            &expect["tools"]
        }
        other => other,
    };
    match expected {
        Value::Array(expected) if expected.iter().all(Value::is_string) => {
            let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
            expect_same("tools", &json!(expected), &json!(names))
        }
        Value::Array(expected) => {
            if expected.len() != tools.len() {
                return Err(format!("expected {} tools, got {}", expected.len(), tools.len()));
            }
            expected
                .iter()
                .zip(&tools)
                .try_for_each(|(expected, tool)| compare_tool(expected, tool))
        }
        Value::Object(expected) => {
            expected.iter().try_for_each(|(key, expected)| match key.as_str() {
                "names" => expect_same(
                    key,
                    expected,
                    &json!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>()),
                ),
                "args" | "args_type" => compare_tool(&json!({ key: expected }), &tools[2]),
                "additional_properties" | "additionalProperties" => {
                    tools.iter().try_for_each(|tool| compare_tool(&json!({ key: expected }), tool))
                }
                name => {
                    let tool = tools.iter().find(|tool| tool["name"] == name);
                    compare_tool(expected, tool.ok_or_else(|| format!("no tool `{name}`"))?)
                }
            })
        }
        other => Err(format!("unknown expectation {other}")),
    }
}

fn described(name: &str, schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut tool =
        members(json!({"name": name, "properties": properties.keys().collect::<Vec<_>>()}));
    tool.insert("required".into(), schema.get("required").cloned().unwrap_or(json!([])));
    tool.insert("type".into(), schema["type"].clone());
    if let Some(args) = properties.get("args") {
        tool.insert("args".into(), args.clone());
        tool.insert("args_type".into(), args["type"].clone());
    }
    for key in ["additional_properties", "additionalProperties"] {
        tool.insert(key.into(), schema.get("additionalProperties").cloned().unwrap_or(Value::Null));
    }
    for key in ["parameters", "schema", "input_schema", "inputSchema"] {
        tool.insert(key.into(), schema.clone());
    }
    tool
}

/// Compares a schema, or a part of one, without its descriptions, which no rule fixes.
fn compare_tool(expected: &Value, tool: &Map<String, Value>) -> Result<(), String> {
    // A schema without a tool.
    if expected.get("type") == Some(&json!("object")) && expected.get("name").is_none() {
        return expect_same("schema", &without_words(expected), &without_words(&tool["schema"]));
    }
    if let Value::Array(_) = expected {
        return expect_same("properties", expected, &tool["properties"]);
    }
    for (key, expected) in object(expected)? {
        let got = match (key.as_str(), expected) {
            ("properties", Value::Object(_)) => &tool["schema"]["properties"],
            _ => tool.get(key).ok_or_else(|| format!("unknown key `{key}` in `expect`"))?,
        };
        expect_same(key, &without_words(expected), &without_words(got))?;
    }
    Ok(())
}

fn without_words(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            // A property of one of these names is a schema and not a string.
            let is_word = |key: &str, value: &Value| {
                matches!(key, "description" | "title") && value.is_string()
            };
            let others = members.iter().filter(|(key, value)| !is_word(key, value));
            Value::Object(others.map(|(key, value)| (key.clone(), without_words(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_words).collect()),
        other => other.clone(),
    }
}

fn advertised(row: &Row) -> Result<(), String> {
    let skills = object(row.required("skills")?)?;
    let skill = |(name, description): (&String, &Value)| {
        let description = description.as_str().ok_or("a description is not text")?;
        let skill = ProgramSkill::new(name, description, "").map_err(|error| error.to_string())?;
        Ok::<_, String>(Skill::Program(Arc::new(skill)))
    };
    // In the opposite of the order in which they are shown.
    let list = SkillList::new(skills.iter().rev().map(skill).collect::<Result<Vec<_>, _>>()?);
    let advertised = list.advertised();
    if !list.instructions().contains(&advertised) {
        return Err("the instructions do not hold the list".to_owned());
    }
    expect_same("advertised", &row.expect, &json!(advertised))
}

/// Calls one of the tools over the three skills.
async fn tool(row: &Row) -> Result<(), String> {
    let fixture = world::fixture();
    let tools = fixture.tools(Skills::builder()).await?;
    let ran = call(&tools, row.text("tool")?, row.required("args")?).await?;
    compare_ran(&row.expect, &ran, fixture.script_got())
}

async fn call(tools: &Toolset, tool: &str, args: &Value) -> Result<Ran, String> {
    let context = CallContext::new("row");
    match tools.call(tool, Some(args.to_string().as_bytes()), &context).await {
        Ok(completion) => Ran::of(&completion),
        Err(RefusedCall::InvalidArguments(invalid)) => Ok(Ran::refused(&invalid)),
        Err(refused) => Err(refused.to_string()),
    }
}

/// Compares the result of a tool's call.
fn compare_ran(expect: &Value, ran: &Ran, script_got: Option<Value>) -> Result<(), String> {
    for (key, expected) in object(expect)? {
        let got = match key.as_str() {
            // A note about the row.
            "note" => continue,
            "text" => json!(ran.text),
            "is_error" => json!(ran.is_error),
            "json" => ran.json()?,
            "text_prefix" => {
                let prefix = expected.as_str().ok_or("`text_prefix` is not a text")?;
                json!(if ran.text.starts_with(prefix) { prefix } else { &ran.text })
            }
            // The message of an error, or the complete value of `error`.
            "error" if expected.is_string() => {
                ran.error()?.get("message").cloned().unwrap_or_default()
            }
            "error" => ran.error()?,
            // A component returns its arguments; a function records them.
            "script_got" => match ran.json().ok().and_then(|json| json.get("args").cloned()) {
                Some(args) => args,
                None => script_got.clone().ok_or("no script has run")?,
            },
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        expect_same(key, expected, &got).map_err(|error| format!("{error} ({:?})", ran.detail))?;
    }
    Ok(())
}

fn built(builder: cofferdam_skills::SkillsBuilder) -> Result<Skills, String> {
    builder.build().map_err(|error| error.to_string())
}

fn names(list: &SkillList) -> Vec<&str> {
    list.skills().iter().map(Skill::name).collect()
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("not an object: {value}"))
}
