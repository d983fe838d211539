//! Draws the terminal session of the README, as an SVG image of a real run.
//!
//! `cargo xtask picture` runs the commands and writes the image. `cargo xtask test` runs them again
//! and fails if the output differs from the image.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::run::{root, section};

const IMAGE: &str = "docs/images/session.svg";

/// Commands as a user types them in a directory with `notes/` and the components.
const COMMANDS: [&[&str]; 4] = [
    &[
        "call",
        "outline",
        r#"{"file":"/data/a.md"}"#,
        "--plugin",
        "markdown.wasm",
        "--mount",
        "data=notes:ro",
    ],
    &[
        "call",
        "outline",
        r#"{"file":"/etc/passwd"}"#,
        "--plugin",
        "markdown.wasm",
        "--mount",
        "data=notes:ro",
    ],
    &["call", "panic", r#"{"message":"boom"}"#, "--plugin", "crash.wasm"],
    &["call", "fetch", r#"{"url":"https://api.example.com/items"}"#, "--config", "cofferdam.toml"],
];

const COLUMNS: usize = 96;
const CHARACTER_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 16;

/// A line of the session.
enum Line {
    Command(String),
    Output(String),
    Error(String),
}

/// Writes the image.
pub(crate) fn write() -> anyhow::Result<()> {
    let path = root().join(IMAGE);
    let folder = path.parent().context("the image lies in a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(&path, svg(&session()?)).with_context(|| format!("cannot write {IMAGE}"))
}

/// Fails if the image differs from a run of the current binary.
pub(crate) fn check() -> anyhow::Result<()> {
    section("checking the terminal session of the README");
    if std::fs::read_to_string(root().join(IMAGE)).unwrap_or_default() != svg(&session()?) {
        bail!("{IMAGE} does not show what the commands print; run `cargo xtask picture`");
    }
    Ok(())
}

/// Runs the commands in a fresh directory.
fn session() -> anyhow::Result<Vec<Line>> {
    let target = root().join("target");
    let folder = target.join("picture");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(folder.join("notes"))?;
    std::fs::write(folder.join("notes/a.md"), "# Plans\n## Today\n")?;
    std::fs::write(folder.join("cofferdam.toml"), "[plugins.web]\ncomponent = \"web.wasm\"\n")?;
    for name in ["markdown", "crash", "web"] {
        let component = format!("{name}.wasm");
        std::fs::copy(target.join("plugins").join(&component), folder.join(&component))
            .with_context(|| format!("{component} is missing: run `cargo xtask guests` first"))?;
    }
    let mut lines = Vec::new();
    for command in COMMANDS {
        run(command, &folder, &target, &mut lines)?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(lines)
}

fn run(
    command: &[&str],
    folder: &Path,
    target: &Path,
    lines: &mut Vec<Line>,
) -> anyhow::Result<()> {
    let program = target.join("debug/cofferdam");
    let output = Command::new(&program)
        .args(command)
        .args(["--cache-dir", "cache"])
        .env_remove("COFFERDAM_CONFIG")
        .env_remove("COFFERDAM_LOG")
        .env("XDG_STATE_HOME", folder.join("state"))
        .current_dir(folder)
        .output()
        .with_context(|| format!("{} cannot be run", program.display()))?;
    let quoted = command.iter().map(|word| match word.starts_with('{') {
        true => format!("'{word}'"),
        false => (*word).to_owned(),
    });
    let typed = format!("$ cofferdam {}", quoted.collect::<Vec<_>>().join(" "));
    lines.extend(wrapped(&typed).into_iter().map(Line::Command));
    let stdout = String::from_utf8(output.stdout).context("the output is UTF-8")?;
    let stderr = String::from_utf8(output.stderr).context("the output is UTF-8")?;
    let is_result = |line: &&str| !line.starts_with("compiling ") && !line.contains(", once");
    let stdout = stdout.lines().flat_map(wrapped).map(Line::Output);
    let stderr = stderr.lines().filter(is_result).flat_map(wrapped).map(Line::Error);
    lines.extend(stdout);
    lines.extend(stderr);
    lines.push(Line::Output(String::new()));
    Ok(())
}

/// Wraps a line at spaces to the width of the terminal.
fn wrapped(line: &str) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let is_full =
            |row: &String| row.chars().count() + word.trim_end().chars().count() > COLUMNS;
        if rows.last().is_some_and(is_full) {
            rows.push("  ".to_owned());
        }
        if let Some(row) = rows.last_mut() {
            row.push_str(word);
        }
    }
    rows
}

#[expect(clippy::cast_precision_loss, reason = "a terminal has few columns")]
fn svg(lines: &[Line]) -> String {
    let width = (COLUMNS as f64).mul_add(CHARACTER_WIDTH, 2.0 * MARGIN as f64).round();
    let height = lines.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"A terminal session\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1c1f26\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\" \
         xml:space=\"preserve\">\n"
    );
    for (index, line) in lines.iter().enumerate() {
        let (text, color) = match line {
            Line::Command(text) => (text, "#9ece6a"),
            Line::Output(text) => (text, "#e6e6e6"),
            Line::Error(text) => (text, "#e0af68"),
        };
        let y = MARGIN + (index + 1) * LINE_HEIGHT - 5;
        let text = text.trim_end().replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{color}\">{text}</text>");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}
