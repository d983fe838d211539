//! The kinds of stores, and their preparation for a row.

use std::path::Path;
use std::sync::Arc;

use cofferdam_files::{
    BucketStore, Budget, DirectoryOptions, DirectoryStore, FileAccessOptions, FileStore,
    MemoryStore, Overlay, Quota, ReadOnly, StorePath, WriteMode,
};
use cofferdam_tool::Toolset;
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::super::Row;
use super::Tools;

/// All kinds of stores.
const KINDS: &[&str] = &["memory", "directory", "object", "overlay"];

/// A scenario on one store.
pub(super) struct Scenario {
    pub(super) kind: String,
    pub(super) toolset: Toolset,
    _folder: Option<TempDir>,
}

/// Returns an empty store of a kind, and its directory.
pub(super) fn store(
    kind: &str,
    quota: Quota,
) -> Result<(Arc<dyn FileStore>, Option<TempDir>), String> {
    Ok(match kind {
        "memory" => (Arc::new(MemoryStore::new(quota)), None),
        "object" => (Arc::new(BucketStore::in_memory(quota)), None),
        "overlay" => (
            Arc::new(Overlay::new(Arc::new(MemoryStore::new(quota)), &Budget::new(u64::MAX))),
            None,
        ),
        "directory" => {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let options =
                DirectoryOptions { quota, is_durable: false, ..DirectoryOptions::default() };
            let store = DirectoryStore::open_ambient(folder.path(), options)
                .map_err(|error| error.to_string())?;
            (Arc::new(store), Some(folder))
        }
        other => return Err(format!("unknown kind of store `{other}`")),
    })
}

/// Returns the stores of a row with the row's files.
pub(super) async fn scenarios(row: &Row) -> Result<Vec<Scenario>, String> {
    let kinds: Vec<&str> = match row.get("stores") {
        Some(kinds) => kinds.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        None => KINDS.to_vec(),
    };
    let (quota, options) = (quota(row.get("quota"))?, caps(row.get("caps"))?);
    let mut scenarios = Vec::new();
    for kind in kinds {
        let (store, folder) = store(kind, quota)?;
        for item in row.get("setup").and_then(Value::as_array).into_iter().flatten() {
            prepare(&*store, folder.as_ref().map(TempDir::path), item).await?;
        }
        let store = if row.flag("read_only") { Arc::new(ReadOnly::new(store)) } else { store };
        let tools = Tools::with_every_tool("workspace", store, options.clone());
        let mut toolset = Toolset::new();
        toolset
            .add(Arc::new(tools.map_err(|error| error.to_string())?))
            .map_err(|error| error.to_string())?;
        scenarios.push(Scenario { kind: kind.to_owned(), toolset, _folder: folder });
    }
    Ok(scenarios)
}

async fn prepare(store: &dyn FileStore, folder: Option<&Path>, item: &Value) -> Result<(), String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let path = |text: &str| StorePath::file(text).map_err(|error| error.to_string());
    let outside = |name: &str| {
        let path = folder.ok_or("only a directory can hold that")?.join(name);
        let parent = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
        Ok::<_, String>(path)
    };
    if let Some(name) = text("file") {
        let content = match (text("text"), text("hex")) {
            (_, Some(hex)) => unhex(hex)?,
            (content, None) => content.unwrap_or_default().as_bytes().to_vec(),
        };
        store
            .write(&path(name)?, content, WriteMode::Replace)
            .await
            .map_err(|error| error.to_string())
    } else if let Some(name) = text("directory") {
        store.create_directory(&path(name)?).await.map(drop).map_err(|error| error.to_string())
    } else if let Some(name) = text("link") {
        let target = text("to").ok_or("a link needs `to`")?;
        std::os::unix::fs::symlink(target, outside(name)?).map_err(|error| error.to_string())
    } else if let Some(name) = text("fifo") {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, outside(name)?, rustix::fs::FileType::Fifo, mode, 0)
            .map_err(|error| error.to_string())
    } else {
        Err(format!("unknown preparation {item}"))
    }
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..text.len()).step_by(2).map(|at| digit(at).ok_or("bad `hex`".to_owned())).collect()
}

/// Parses `quota`, with the rules' names for its parts.
pub(super) fn quota(given: Option<&Value>) -> Result<Quota, String> {
    let mut quota = Quota::default();
    for (name, value) in members(given)? {
        let value = value.as_u64().ok_or_else(|| format!("`{name}` is not a number"))?;
        match name.as_str() {
            "bytes" => quota.bytes_max = value,
            "entries" | "files" => quota.entries_max = value,
            "file_bytes" | "file_size" | "file" => quota.file_bytes_max = value,
            "depth" => quota.depth_max = value,
            other => return Err(format!("unknown quota `{other}`")),
        }
    }
    Ok(quota)
}

fn caps(given: Option<&Value>) -> Result<FileAccessOptions, String> {
    let mut options = FileAccessOptions::default();
    for (name, value) in members(given)? {
        let value = value.as_u64().ok_or_else(|| format!("`{name}` is not a number"))?;
        let count = usize::try_from(value).map_err(|error| error.to_string())?;
        match name.as_str() {
            "max_matches" => options.search.matches_max = value,
            "max_line_bytes" => options.search.line_bytes_max = count,
            "max_entries" => options.entries_max = count,
            "max_read_bytes" => options.read_bytes_max = value,
            other => return Err(format!("unknown cap `{other}`")),
        }
    }
    Ok(options)
}

fn members(given: Option<&Value>) -> Result<Map<String, Value>, String> {
    match given {
        None => Ok(Map::new()),
        Some(given) => given.as_object().cloned().ok_or_else(|| format!("not an object: {given}")),
    }
}

/// Returns the options of a mode.
pub(super) fn mode(word: &str) -> Result<FileAccessOptions, String> {
    let default = FileAccessOptions::default();
    Ok(match word {
        "default" => default,
        "read_only" | "read-only" => FileAccessOptions { is_read_only: true, ..default },
        "require_write_approval" | "write_approval" => {
            FileAccessOptions { require_write_approval: true, ..default }
        }
        "no_delete_approval" | "no_approval" => {
            FileAccessOptions { require_delete_approval: false, ..default }
        }
        other => return Err(format!("unknown mode `{other}`")),
    })
}

/// Builds the tools with the settings of a row.
pub(super) fn with_settings(
    mut options: FileAccessOptions,
    settings: Option<&Value>,
) -> Result<FileAccessOptions, String> {
    for (name, value) in members(settings)? {
        let value = value.as_bool().ok_or_else(|| format!("`{name}` is not a flag"))?;
        match name.as_str() {
            "require_delete_approval" => options.require_delete_approval = value,
            "require_write_approval" => options.require_write_approval = value,
            other => return Err(format!("unknown setting `{other}`")),
        }
    }
    Ok(options)
}

/// Returns the tools over an empty store.
pub(super) fn tools(options: FileAccessOptions) -> Result<Tools, String> {
    let store = Arc::new(MemoryStore::new(Quota::default()));
    Tools::new("workspace", store, options).map_err(|error| error.to_string())
}

/// Runs all vendored rows that are steps of scenarios and list `kind`, on that kind only.
pub(super) fn every_row(
    kind: &str,
    run: impl Fn(&Row) -> Result<(), String>,
) -> Result<(), String> {
    if !KINDS.contains(&kind) {
        return Err(format!("unknown kind of store `{kind}`"));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/files_tools.jsonl");
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    for line in text.lines().filter(|line| line.contains("\"scenario\"")) {
        let mut row = Row::parse(line)?;
        let listed = row.get("stores").and_then(Value::as_array).cloned();
        if listed.is_some_and(|listed| !listed.iter().any(|listed| listed == kind)) {
            continue;
        }
        let scenario = format!("{kind} {}", row.text("scenario")?);
        if let Value::Object(members) = &mut row.value {
            members.insert("stores".to_owned(), serde_json::json!([kind]));
            members.insert("scenario".to_owned(), scenario.into());
        }
        run(&row).map_err(|error| format!("{}: {error}", row.id))?;
    }
    Ok(())
}
