//! `cofferdam test`: runs the test cases of a plugin, each in a sandbox.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::args::{Global, TestArgs};
use crate::exit::{Exit, UsageError};
use crate::rebuild::{self, Recipe};
use crate::{host, print};
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
        replays: args.replay,
    };
    let (mut passed, mut failed) = (0, 0);
    for malformed in &cases.malformed {
        failed += 1;
        let title = format!("line {}", malformed.line);
        show(&args, &title, None, std::slice::from_ref(&malformed.message))?;
    }
    for case in &cases.cases {
        let problems = match runner.run(case).await {
            Ok(verdict) => verdict.problems,
            // The case asks for something impossible; the others can still run.
            Err(cofferdam::Error::Invalid(message)) => vec![message],
            Err(error) => return Err(error.into()),
        };
        if problems.is_empty() {
            passed += 1
        } else {
            failed += 1
        }
        show(&args, &case.title(), Some(&case.tool), &problems)?;
    }
    let summary = format!("{passed} passed, {failed} failed");
    if args.json {
        print::note(&summary)
    } else {
        print::result(&summary)?
    }
    if passed + failed == 0 {
        return Err(UsageError(super::no_cases(args.filter.as_deref())).into());
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::ToolFailure })
}

/// Prints the verdict about a case.
fn show(
    args: &TestArgs,
    title: &str,
    tool: Option<&str>,
    problems: &[String],
) -> anyhow::Result<()> {
    let is_ok = problems.is_empty();
    if args.json {
        let line = json!({"case": title, "tool": tool, "ok": is_ok, "problems": problems});
        return print::result(&line.to_string());
    }
    print::verdict(is_ok, title)?;
    problems.iter().try_for_each(|problem| print::result(&format!("       {problem}")))
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
        let is_built = component.is_file();
        if !is_built && args.no_build {
            let message =
                format!("{} is missing; `cofferdam build` builds it", component.display());
            return Err(UsageError(message).into());
        }
        let is_older = is_built && is_older(&component, project.directory());
        if is_older && args.no_build {
            print::note("note: sources are newer than the component");
        } else if is_older || !is_built {
            rebuild::build(&Recipe {
                directory: args.path.clone(),
                output: None,
                keep_names: false,
                is_verbose: false,
            })?;
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
