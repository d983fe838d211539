//! `cofferdam test`: runs the test cases of a plugin, each in a sandbox.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::args::{Global, TestArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print, rebuild};
use cofferdam::cases::{self, Cases, Runner};
use cofferdam::compose;

pub(crate) async fn run(global: &Global, args: TestArgs) -> anyhow::Result<Exit> {
    let Subject { component, cases, language } = Subject::find(&args)?;
    let language = args.language.map(|language| language.id()).or(language);
    let mut cases = Cases::read(&cases)?;
    cases.retain(language, args.filter.as_deref());
    let engine = host::engine(global)?;
    let declarations = compose::examine(&engine, &component, &host::operator()).await?.declarations;
    let runner = Runner {
        engine: &engine,
        component: &component,
        directory: &cases.directory,
        language,
        declarations: &declarations,
    };
    let (mut passed, mut failed) = (0, 0);
    for case in &cases.cases {
        let verdict = runner.run(case).await?;
        let is_ok = verdict.problems.is_empty();
        if is_ok {
            passed += 1
        } else {
            failed += 1
        }
        if args.json {
            let line = json!({"case": case.title(), "tool": case.tool, "ok": is_ok, "problems": verdict.problems});
            print::result(&line.to_string())?;
        } else {
            print::result(&format!(
                "{} {}",
                if is_ok { "ok    " } else { "FAILED" },
                case.title()
            ))?;
            for problem in &verdict.problems {
                print::result(&format!("       {problem}"))?;
            }
        }
    }
    let summary = format!("{passed} passed, {failed} failed");
    if args.json {
        print::note(&summary)
    } else {
        print::result(&summary)?
    }
    if passed + failed == 0 {
        return Err(UsageError("there is no such case".to_owned()).into());
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::ToolFailure })
}

/// Component and cases to test.
struct Subject {
    component: PathBuf,
    cases: PathBuf,
    /// Language of the project. `None` if the path is a component.
    language: Option<&'static str>,
}

impl Subject {
    fn find(args: &TestArgs) -> anyhow::Result<Self> {
        if args.path.is_file() {
            let beside = args.path.parent().unwrap_or(Path::new("")).join(cases::FILE);
            let cases = args.cases.clone().unwrap_or(beside);
            return Ok(Self { component: args.path.clone(), cases, language: None });
        }
        let project = rebuild::open(&args.path)?;
        let component = project.component();
        if !component.is_file() {
            let message =
                format!("{} is not there; `cofferdam build` makes it", component.display());
            return Err(UsageError(message).into());
        }
        if is_older(&component, project.directory()) {
            print::note(
                "note: sources are newer than the component; `cofferdam build` builds it again",
            );
        }
        let cases = args.cases.clone().unwrap_or_else(|| project.directory().join(cases::FILE));
        Ok(Self { component, cases, language: Some(project.language().id()) })
    }
}

/// Returns whether a source at the top of the project or in `src` is newer than the component.
fn is_older(component: &Path, directory: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let Some(built) = time(component) else { return false };
    [directory.to_owned(), directory.join("src")].iter().any(|folder| {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| {
            let relative = path.strip_prefix(directory).unwrap_or(&path);
            let is_read = path.is_file()
                && cofferdam_author::is_source(relative)
                && !path.extension().is_some_and(|ending| ending == "md" || ending == "jsonl");
            is_read && time(&path).is_some_and(|changed| changed > built)
        })
    })
}
