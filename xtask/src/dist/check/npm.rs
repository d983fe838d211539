//! Installs the npm packages from their archives into an empty folder, without a registry.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::clean::{CleanHome, check_leftovers, files_below};
use super::{is_available, plugin};
use crate::dist::{Artifact, npm};
use crate::packages::text;

/// Program in the folder of an installation.
const PROGRAM: &str = "node_modules/.bin/cofferdam";
/// Calls a tool through the client for Node.
const CALL: &str = r#"
import { strictEqual } from "node:assert";
import { Cofferdam } from "cofferdam";
const host = await Cofferdam.start({ plugins: process.argv[1] });
const result = await host.call("count_words", { text: "to be or not to be" });
strictEqual(result.value, 6);
await host.close();
"#;
/// Maximum time in which the launcher and its program end after a signal.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks the main package with that of a platform.
pub(super) fn check(main: &Path, platform: &Artifact) -> anyhow::Result<()> {
    if !is_available("npm")? {
        return Ok(());
    }
    let home = CleanHome::new()?;
    let folder = home.folder().join("project");
    fs::create_dir(&folder)?;
    let manifest = "{\"private\": true}\n";
    fs::write(folder.join("package.json"), manifest)?;
    let npm = |arguments: &[&str]| -> anyhow::Result<()> {
        let start = [
            "--offline",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--no-update-notifier",
            "--loglevel=error",
        ];
        let arguments: Vec<_> = arguments.iter().chain(&start).copied().collect();
        home.command("npm", &arguments).quiet().run(&folder)
    };
    let mut install = vec!["install", text(main)?, text(&platform.path)?];
    if platform.platform.is_static() {
        // npm refuses packages for another C library, with which a static program runs too.
        install.push("--force");
    }
    npm(&install)?;
    let program = folder.join(PROGRAM);
    home.check_program(&program)?;
    if folder.join("node_modules/cofferdam/src").is_dir() {
        let plugin = plugin();
        let call = ["--input-type=module", "--eval", CALL, text(&plugin)?];
        home.command("node", &call).run(&folder)?;
    }
    if cfg!(target_os = "linux") {
        check_signal(&home, &program)?;
    }
    let name = npm::package(&platform.platform);
    fs::remove_dir_all(folder.join("node_modules").join(&name))?;
    check_message(&home, &program, &name)?;
    npm(&["uninstall", "cofferdam", &name])?;
    let before = ["package.json", "package-lock.json", "node_modules/.package-lock.json"];
    check_leftovers(&before.map(Into::into).into(), &files_below(&folder)?)
}

/// Ends the launcher as a client does, and expects its program to end as well.
fn check_signal(home: &CleanHome, program: &Path) -> anyhow::Result<()> {
    let mut launcher = Command::new(program);
    launcher.args(["serve", "--files", "notes=memory"]).env("HOME", home.folder());
    // The pipe stays open, so that only the signal ends the server.
    let mut launcher =
        launcher.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let id = launcher.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let started = Instant::now();
    let child = loop {
        let listed = fs::read_to_string(&children)?;
        if let Some(child) = listed.split_whitespace().next() {
            break child.to_owned();
        }
        wait(started, "the launcher starts no program")?;
    };
    let killed = Command::new("kill").args(["-TERM", &id.to_string()]).status()?;
    if !killed.success() {
        bail!("`kill` failed: {killed}");
    }
    end(&mut launcher)?;
    let started = Instant::now();
    while Path::new("/proc").join(&child).exists() {
        wait(started, "the program still runs after its launcher has ended")?;
    }
    Ok(())
}

/// Waits until the launcher has ended.
fn end(launcher: &mut Child) -> anyhow::Result<()> {
    let started = Instant::now();
    while launcher.try_wait()?.is_none() {
        if let Err(error) = wait(started, "the launcher does not end on SIGTERM") {
            launcher.kill().context("cannot end the launcher")?;
            return Err(error);
        }
    }
    Ok(())
}

fn wait(since: Instant, message: &'static str) -> anyhow::Result<()> {
    if since.elapsed() > END_TIMEOUT {
        bail!(message);
    }
    std::thread::sleep(Duration::from_millis(20));
    Ok(())
}

/// Expects the launcher to name the package that is missing.
fn check_message(home: &CleanHome, program: &Path, package: &str) -> anyhow::Result<()> {
    let output = Command::new(program).env("HOME", home.folder()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains(package) {
        bail!("without {package}, the launcher ended with {} and `{}`", output.status, said.trim());
    }
    Ok(())
}
