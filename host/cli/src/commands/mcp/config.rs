//! `cofferdam mcp config`: the entry of a host's file, printed or put there.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::host::Entry;
use super::served;
use crate::args::{Global, McpConfigArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};
use cofferdam::config::edit::replace_file;

/// Largest file of a host that is edited, in bytes: far beyond what a person keeps there.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What is added to the name of the file for what it was before.
const BACKUP: &str = ".before-cofferdam";

pub(super) fn run(global: &Global, args: &McpConfigArgs) -> anyhow::Result<Exit> {
    served::check(&args.plugins, host::config(&args.plugins)?.as_ref())?;
    let entry = Entry {
        name: args.name.clone(),
        command: served::program()?,
        arguments: served::arguments(global, &args.plugins, &args.more)?,
    };
    match &args.write {
        None => print::result(args.host.new_file(&entry)?.trim_end())?,
        Some(path) => {
            let path = path.clone().map_or_else(|| args.host.file(), Ok)?;
            let written = write(&path, |text| args.host.with_entry(text, &entry))?;
            print::note(&written.told(&path, &entry.name));
            if !matches!(written, Written::Same) {
                print::note(args.host.next_step());
            }
        }
    }
    if let Some(config) = &args.plugins.config {
        let names: Vec<_> = served::variables(config)?.into_iter().collect();
        if !names.is_empty() {
            let names = names.join(", ");
            print::note(&format!(
                "the configuration reads from the environment, which the host has to pass on: {names}"
            ));
        }
    }
    Ok(Exit::Ok)
}

/// What has become of a file.
enum Written {
    /// It said so already.
    Same,
    /// There was none.
    New,
    /// It says more than before, and what it said before is kept.
    Changed(PathBuf),
}

impl Written {
    fn told(&self, path: &Path, name: &str) -> String {
        let path = path.display();
        match self {
            Self::Same => format!("{path} has `{name}` like this already; nothing was changed"),
            Self::New => format!("{path} was made, with `{name}` in it"),
            Self::Changed(backup) => {
                format!("{path} has `{name}` now; as it was before it is kept in {}", backup.display())
            }
        }
    }
}

/// Edits a file in one step. What it said before stays beside it.
fn write(path: &Path, edit: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<Written> {
    let shown = path.display();
    let before = match cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder {
                let made = std::fs::create_dir_all(folder);
                made.with_context(|| format!("{} cannot be made", folder.display()))?;
            }
            replace_file(path, edit("")?.as_bytes()).with_context(|| format!("{shown} cannot be written"))?;
            return Ok(Written::New);
        }
        read => read.map_err(|error| UsageError(format!("{shown} cannot be read: {error}")))?,
    };
    // A link to the file stays a link.
    let real = path.canonicalize().with_context(|| format!("{shown} cannot be resolved"))?;
    let after = edit(&before).with_context(|| format!("{shown} is left as it is"))?;
    if after == before {
        return Ok(Written::Same);
    }
    let mut backup = real.clone().into_os_string();
    backup.push(BACKUP);
    let backup = PathBuf::from(backup);
    std::fs::copy(&real, &backup).with_context(|| format!("{} cannot be written", backup.display()))?;
    replace_file(&real, after.as_bytes()).with_context(|| format!("{shown} cannot be written"))?;
    Ok(Written::Changed(backup))
}
