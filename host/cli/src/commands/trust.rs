//! `cofferdam trust`: configurations that commands use without `--config`.

use std::path::Path;

use cofferdam::config::ConfigFile;
use cofferdam::consent;
use cofferdam::trust::{self, FoundConfig, Trust};

use crate::args::{Cli, Command, PluginArgs, TrustArgs, WorkflowCommand};
use crate::exit::{Exit, UsageError};
use crate::print;

pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<Exit> {
    if args.list {
        return list();
    }
    let file = match &args.file {
        Some(file) if file.is_dir() => file.join(trust::CONFIG_FILE),
        Some(file) => file.clone(),
        None => match trust::find_ambient(&std::env::current_dir()?)? {
            Some(found) => found.path,
            None => {
                let name = trust::CONFIG_FILE;
                return Err(UsageError(format!(
                    "there is no {name} here or above; `cofferdam config init` creates one"
                ))
                .into());
            }
        },
    };
    if args.revoke {
        let was_trusted = trust::distrust_ambient(&file)?;
        let state = if was_trusted { "is no longer trusted" } else { "was not trusted" };
        print::note(&format!("{} {state}", file.display()));
        return Ok(Exit::Ok);
    }
    // Shows errors before the file is used, and trusts what was read.
    let config = ConfigFile::read_ambient(&file)?;
    let name = trust::CONFIG_FILE;
    if file.file_name().is_none_or(|found| found != name) {
        return Err(UsageError(format!(
            "{} is not called {name}, and so no command would use it without --config; rename it, \
             or name it with --config",
            file.display()
        ))
        .into());
    }
    let path = trust::trust_ambient(&config)?;
    print::note(&format!(
        "{} is trusted until it changes; commands in its directory use it without --config",
        path.display()
    ));
    Ok(Exit::Ok)
}

fn list() -> anyhow::Result<Exit> {
    let trusted = trust::list_ambient()?;
    if trusted.is_empty() {
        print::note("no configuration is trusted; `cofferdam trust FILE` trusts one");
    }
    for FoundConfig { path, trust } in trusted {
        let state = if trust == Trust::Trusted { "" } else { "  (changed since)" };
        print::result(&format!("{}{state}", path.display()))?;
    }
    Ok(Exit::Ok)
}

/// Adds the trusted configuration of the working directory to a command that names neither a
/// configuration nor anything to load.
pub(crate) fn find_config(cli: &mut Cli) -> anyhow::Result<()> {
    let config = match &mut cli.command {
        Command::Call(args) => of_plugins(&mut args.plugins),
        Command::List(args) => of_plugins(&mut args.plugins),
        Command::Play(args) => of_plugins(&mut args.plugins),
        Command::Chat(args) if !args.sessions => of_plugins(&mut args.plugins),
        Command::Serve(args) => of_plugins(&mut args.plugins),
        Command::Args(args) if args.tool.is_some() => of_plugins(&mut args.plugins),
        Command::Workflow(WorkflowCommand::Run(args)) => of_plugins(&mut args.plugins),
        Command::Search(args) => Some(&mut args.config),
        Command::Add(args) => Some(&mut args.config),
        Command::Remove(args) => Some(&mut args.config),
        Command::Fetch(args) => Some(&mut args.config),
        Command::Update(args) => Some(&mut args.config),
        Command::Audit(args) => Some(&mut args.config),
        Command::Export(args) | Command::Import(args) => Some(&mut args.config),
        Command::Publish(args) => Some(&mut args.config),
        Command::Sign(args) => Some(&mut args.config),
        Command::Verify(args) => Some(&mut args.config),
        Command::Grant(args) if !args.list => Some(&mut args.config),
        Command::Revoke(args) if args.remembered.is_none() => Some(&mut args.config),
        Command::Approve(args) => Some(&mut args.config),
        Command::Log(args) => {
            let log = args.log_mut();
            log.directory.is_none().then_some(&mut log.config)
        }
        Command::Replay(args) if args.log.directory.is_none() => Some(&mut args.log.config),
        _ => None,
    };
    let Some(config) = config.filter(|config| config.is_none()) else { return Ok(()) };
    // Without a working directory, there is nothing to find.
    let Ok(directory) = std::env::current_dir() else { return Ok(()) };
    let Some(found) = trust::find_ambient(&directory)? else { return Ok(()) };
    match found.trust {
        Trust::Trusted => *config = Some(shortened(&found.path, &directory).to_owned()),
        Trust::Changed => note_unused(&found.path, "has changed since it was trusted"),
        Trust::Unknown => note_unused(&found.path, "is not trusted"),
    }
    Ok(())
}

fn of_plugins(args: &mut PluginArgs) -> Option<&mut Option<std::path::PathBuf>> {
    let names_nothing = args.plugins.is_empty() && args.files.is_none() && args.skills.is_empty();
    names_nothing.then_some(&mut args.config)
}

fn note_unused(path: &Path, why: &str) {
    print::note(&format!(
        "note: {} {why}, and is not used; `cofferdam config check {}` explains it, `cofferdam \
         trust` trusts it",
        path.display(),
        consent::shell_path(path)
    ));
}

/// Returns a path relative to the working directory if it is in it.
fn shortened<'a>(path: &'a Path, directory: &Path) -> &'a Path {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    path.strip_prefix(directory).unwrap_or(path)
}
