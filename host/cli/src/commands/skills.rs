//! `cofferdam skills`: lists skills, and checks them for errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_skills::{
    ArgumentMode, ComponentScripts, Discovery, FileSkill, ScriptRunner as _, SkillLimits,
    SkipReason, SkippedEntry, discover,
};
use serde_json::{Value, json};

use crate::args::{Global, SkillsCommand, SkillsDirectoriesArgs};
use crate::exit::Exit;
use crate::{host, print};
use cofferdam::skill_tools::{OnEngine, root};

/// Maximum length of a description in a table, in characters. `--json` prints all of it.
const DESCRIPTION_CHARS_MAX: usize = 72;

pub(crate) async fn run(global: &Global, command: SkillsCommand) -> anyhow::Result<Exit> {
    match command {
        SkillsCommand::List(args) => list(&args).await,
        SkillsCommand::Check(args) => check(global, &args).await,
    }
}

async fn found(args: &SkillsDirectoriesArgs, extensions: &[String]) -> anyhow::Result<Discovery> {
    let roots = args
        .directories
        .iter()
        .map(|directory| root(directory))
        .collect::<cofferdam::Result<Vec<_>>>()?;
    Ok(discover(&roots, extensions, &SkillLimits::default()).await)
}

/// Returns the path `below` one of the directories, as the operator wrote the directory.
fn path_of(args: &SkillsDirectoriesArgs, root: usize, below: &str) -> PathBuf {
    args.directories.get(root).map_or(Path::new(""), PathBuf::as_path).join(below)
}

async fn list(args: &SkillsDirectoriesArgs) -> anyhow::Result<Exit> {
    let found = found(args, &["wasm".to_owned()]).await?;
    if args.json {
        let skills: Vec<_> = found.skills.iter().map(|skill| listed(args, skill)).collect();
        let skipped = |skipped: &SkippedEntry| {
            let directory = path_of(args, skipped.root, skipped.directory.as_str());
            json!({"directory": directory, "reason": skipped.reason.to_string(), "is_partial": skipped.is_partial})
        };
        let skipped: Vec<_> = found.skipped.iter().map(skipped).collect();
        print::result(&json!({"skills": skills, "skipped": skipped}).to_string())?;
        return Ok(Exit::Ok);
    }
    if !found.skills.is_empty() {
        print::result(&table(&found.skills))?;
    }
    for skipped in &found.skipped {
        let directory = path_of(args, skipped.root, skipped.directory.as_str());
        let what = if skipped.is_partial { "not all of it" } else { "not a skill" };
        print::note(&format!("{}: {what}: {}", directory.display(), skipped.reason));
    }
    print::note(&print::counted(found.skills.len(), "skill"));
    Ok(Exit::Ok)
}

fn listed(args: &SkillsDirectoriesArgs, skill: &FileSkill) -> Value {
    let front = skill.front_matter();
    json!({
        "name": front.name,
        "description": front.description,
        "directory": path_of(args, skill.root(), skill.directory().as_str()),
        "license": front.license,
        "compatibility": front.compatibility,
        "allowed_tools": front.allowed_tools,
        "metadata": front.metadata,
        "resources": skill.resources().collect::<Vec<_>>(),
        "scripts": skill.scripts().collect::<Vec<_>>(),
        "scripts_without_runner": skill.scripts_without_runner().collect::<Vec<_>>(),
    })
}

fn table(skills: &[Arc<FileSkill>]) -> String {
    let heads = ["NAME", "RESOURCES", "SCRIPTS", "DESCRIPTION"].map(str::to_owned);
    let row = |skill: &Arc<FileSkill>| {
        let front = skill.front_matter();
        let (scripts, without) = (skill.scripts().len(), skill.scripts_without_runner().len());
        let scripts = if without == 0 {
            scripts.to_string()
        } else {
            format!("{scripts} of {}", scripts + without)
        };
        [
            front.name.clone(),
            skill.resources().len().to_string(),
            scripts,
            short(&front.description),
        ]
    };
    let rows: Vec<_> = std::iter::once(heads).chain(skills.iter().map(row)).collect();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let (names, resources, scripts) = (width(0), width(1), width(2));
    let line = |[name, some, others, description]: &[String; 4]| {
        format!("{name:names$}  {some:resources$}  {others:scripts$}  {description}")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the beginning of a description, in one line.
fn short(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().nth(DESCRIPTION_CHARS_MAX).is_none() {
        return line;
    }
    let cut: String = line.chars().take(DESCRIPTION_CHARS_MAX - 1).collect();
    format!("{}…", cut.trim_end())
}

/// Remark about a file for its author.
struct Remark {
    file: PathBuf,
    message: String,
    suggestion: Option<String>,
}

#[derive(Default)]
struct SkillsReport {
    skills: usize,
    problems: Vec<Remark>,
    notes: Vec<Remark>,
}

async fn check(global: &Global, args: &SkillsDirectoriesArgs) -> anyhow::Result<Exit> {
    let engine = host::engine(global)?;
    let scripts = ComponentScripts::new(Arc::new(OnEngine::new(&engine)));
    let extensions: Vec<_> =
        scripts.extensions().iter().map(|&extension| extension.to_owned()).collect();
    let found = found(args, &extensions).await?;
    let mut report = SkillsReport { skills: found.skills.len(), ..SkillsReport::default() };
    for skipped in &found.skipped {
        report.skipped(args, skipped);
    }
    for skill in &found.skills {
        report.skill(args, skill, &scripts).await;
    }
    for (number, directory) in args.directories.iter().enumerate() {
        let has_any = found.skills.iter().any(|skill| skill.root() == number)
            || found.skipped.iter().any(|skipped| skipped.root == number);
        if !has_any {
            let suggestion = "put a SKILL.md into a directory below it; one level is enough, and \
                two are looked at";
            report.problem(directory.clone(), "there is no skill here", Some(suggestion));
        }
    }
    let is_fine = report.problems.is_empty();
    if args.json {
        print::result(&report.json().to_string())?;
    } else {
        report.print()?;
    }
    Ok(if is_fine { Exit::Ok } else { Exit::Plugin })
}

impl SkillsReport {
    fn problem(&mut self, file: PathBuf, message: impl ToString, suggestion: Option<&str>) {
        let suggestion = suggestion.map(str::to_owned);
        self.problems.push(Remark { file, message: message.to_string(), suggestion });
    }

    fn skipped(&mut self, args: &SkillsDirectoriesArgs, skipped: &SkippedEntry) {
        let directory = path_of(args, skipped.root, skipped.directory.as_str());
        let (file, suggestion) = match &skipped.reason {
            SkipReason::Invalid(invalid) => {
                (directory.join("SKILL.md"), Some(invalid.suggestion()))
            }
            SkipReason::Duplicate { .. } => {
                (directory.join("SKILL.md"), Some("give one of the two another name"))
            }
            _ => (directory, None),
        };
        self.problem(file, &skipped.reason, suggestion);
    }

    async fn skill(
        &mut self,
        args: &SkillsDirectoriesArgs,
        skill: &FileSkill,
        scripts: &ComponentScripts,
    ) {
        let directory = path_of(args, skill.root(), skill.directory().as_str());
        if let Some(problem) = &skill.front_matter().metadata_problem {
            self.problem(directory.join("SKILL.md"), problem, Some(problem.suggestion()));
        }
        for name in skill.resources() {
            if let Err(error) = skill.read_resource(name).await {
                let suggestion = "a model can read UTF-8 text; move what is none to a directory \
                    two levels below";
                self.problem(
                    directory.join(name),
                    format!("cannot be read: {error}"),
                    Some(suggestion),
                );
            }
        }
        for name in skill.scripts() {
            let Some(script) = skill.script(name) else { continue };
            match scripts.interface(&script).await {
                Err(error) => {
                    let suggestion = "a script is a component with a tool called `run`, or with exactly one tool; \
                                      `cofferdam check` says more about it";
                    self.problem(
                        directory.join(name),
                        format!("cannot be run: {error}"),
                        Some(suggestion),
                    );
                }
                Ok(interface) => {
                    let takes = match interface.passes {
                        ArgumentMode::AsArguments => "takes arguments of its own",
                        ArgumentMode::AsText => "takes `args` as JSON text",
                        _ => "takes `args`",
                    };
                    let message = format!("runs the tool `{}`, which {takes}", interface.tool.name);
                    self.notes.push(Remark {
                        file: directory.join(name),
                        message,
                        suggestion: None,
                    });
                }
            }
        }
        for name in skill.scripts_without_runner() {
            let message = "is a script that this host does not run".to_owned();
            let suggestion = Some("build it as a component: `cofferdam new` begins one".to_owned());
            self.notes.push(Remark { file: directory.join(name), message, suggestion });
        }
    }

    fn json(&self) -> Value {
        let remark = |remark: &Remark| json!({"file": remark.file, "message": remark.message, "suggestion": remark.suggestion});
        let all = |remarks: &[Remark]| remarks.iter().map(remark).collect::<Vec<_>>();
        json!({
            "ok": self.problems.is_empty(),
            "skills": self.skills,
            "problems": all(&self.problems),
            "notes": all(&self.notes),
        })
    }

    fn print(&self) -> anyhow::Result<()> {
        for (heading, remarks) in [("Problems", &self.problems), ("Notes", &self.notes)] {
            if remarks.is_empty() {
                continue;
            }
            let line = |remark: &Remark| {
                let suggestion = remark
                    .suggestion
                    .iter()
                    .map(|text| format!("\n    {text}"))
                    .collect::<String>();
                format!("  {}: {}{suggestion}", remark.file.display(), remark.message)
            };
            let lines: Vec<_> = remarks.iter().map(line).collect();
            print::result(&format!("{heading}\n{}\n", lines.join("\n")))?;
        }
        let (skills, problems) =
            (print::counted(self.skills, "skill"), print::counted(self.problems.len(), "problem"));
        print::result(&format!("{skills}, {problems}"))
    }
}
