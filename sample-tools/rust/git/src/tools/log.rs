//! Lists commits.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commit::{Commit, Summary};
use crate::glob;
use crate::history::{self, COMMITS_MAX, PathHistory, Queue};
use crate::repository::Repository;
use crate::time::Time;

/// Maximum number of commits that a call returns, whatever it asks for.
const COUNT_MAX: usize = 500;

/// Commits, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Log {
    commits: Vec<Summary>,
    /// Number of commits that were examined.
    examined: usize,
    /// True if there may be more commits. Narrow the call, or continue from `COMMIT^`.
    truncated: bool,
    /// True if this is a shallow clone, whose history is incomplete.
    shallow: bool,
}

/// Lists the commits of a git repository, newest first, like `git log`.
#[expect(clippy::too_many_arguments, reason = "each is a parameter of the tool")]
#[tool(title = "Git log", read_only, idempotent, open_world = false, output_schema)]
pub fn git_log(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// Branch, tag or commit such as `main`, `v1.0~3`, or a range such as `v1.0..main`.
    #[tool(default = "HEAD")]
    revision: String,
    /// List only commits that change this file or directory. Renames are not followed.
    path: Option<String>,
    /// List only commits whose author's name or address contains this, in any case.
    author: Option<String>,
    /// List only commits whose message contains this, in any case.
    message: Option<String>,
    /// List only commits from this date on, for example `2026-01-31`.
    since: Option<String>,
    /// List only commits before this date.
    until: Option<String>,
    /// Maximum number of commits to return, up to 500.
    #[tool(default = 20)]
    count: usize,
) -> Result<Log, ToolFailure> {
    let repository = Repository::open(&repository)?;
    let (hidden, start) = match revision.split_once("..") {
        Some((from, to)) if !to.starts_with('.') => {
            let from = repository.resolve(if from.is_empty() { "HEAD" } else { from })?;
            let to = repository.resolve(if to.is_empty() { "HEAD" } else { to })?;
            (Some(from.id), to)
        }
        _ => (None, repository.resolve(&revision)?),
    };
    let path = path.map(|path| glob::clean(&path)).transpose()?.filter(|path| !path.is_empty());
    let mut history = path.clone().map(|path| PathHistory::new(&repository, path));
    let filter = Filter {
        author: author.map(|it| it.to_lowercase()),
        message: message.map(|it| it.to_lowercase()),
        since: since.as_deref().map(date).transpose()?,
        until: until.as_deref().map(date).transpose()?,
    };
    let mut queue = Queue::new(&repository);
    if let Some(hidden) = hidden {
        history::ancestors(&repository, hidden)?.into_iter().for_each(|id| queue.hide(id));
    }
    queue.push(start.id)?;
    let count = count.min(COUNT_MAX);
    let mut log = Log {
        commits: Vec::new(),
        examined: 0,
        truncated: false,
        shallow: repository.is_shallow(),
    };
    while let Some(commit) = queue.pop() {
        if filter.since.is_some_and(|since| commit.committed < since) {
            break;
        }
        if log.examined == COMMITS_MAX {
            log.truncated = true;
            break;
        }
        log.examined += 1;
        let (is_relevant, parents) = match &mut history {
            Some(history) => history.step(&commit)?,
            None => (true, commit.parents.clone()),
        };
        if is_relevant && filter.accepts(&commit) {
            if log.commits.len() == count {
                log.truncated = true;
                break;
            }
            log.commits.push(commit.summary(true));
        }
        for parent in parents {
            queue.push(parent)?;
        }
    }
    // A path that no commit ever had is likely misspelled.
    if let Some(path) = path.filter(|_| log.commits.is_empty() && hidden.is_none())
        && filter.is_empty()
    {
        return Err(repository.no_path(&start, &path)?);
    }
    Ok(log)
}

struct Filter {
    author: Option<String>,
    message: Option<String>,
    since: Option<i64>,
    until: Option<i64>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        self.author.is_none() && self.message.is_none() && self.since.or(self.until).is_none()
    }

    fn accepts(&self, commit: &Commit) -> bool {
        let author = format!("{} <{}>", commit.author.name, commit.author.email);
        let contains = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.to_lowercase().contains(part))
        };
        self.until.is_none_or(|until| commit.committed < until)
            && contains(&author, &self.author)
            && contains(&commit.message, &self.message)
    }
}

fn date(text: &str) -> Result<i64, ToolFailure> {
    Time::parse(text).map(|time| time.seconds).ok_or_else(|| {
        ToolFailure::new(format!("`{text}` is not a date"))
            .suggestion(
                "pass a date such as `2026-01-31`, or a time such as `2026-01-31T12:00:00Z`",
            )
            .permanent()
    })
}
