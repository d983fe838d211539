//! Finds the commit that a revision such as `main~2` names.

use cofferdam_sdk::ToolFailure;

use crate::commit::{Commit, Tag};
use crate::error::Error;
use crate::id::{Id, Prefix};
use crate::objects::Kind;
use crate::repository::Repository;

/// Maximum number of tags that point to another one.
const TAGS_MAX: usize = 10;

/// Maximum number of parents to go back.
const STEPS_MAX: u32 = 100_000;

/// Maximum number of names in a suggestion.
const NAMES_MAX: usize = 20;

impl Repository {
    /// Returns the commit of a revision: a branch, a tag, `HEAD` or (the beginning of) the name of
    /// a commit, with any number of `~N` and `^N`.
    pub(crate) fn resolve(&self, revision: &str) -> Result<Commit, ToolFailure> {
        let revision = revision.trim();
        if revision.contains("...") {
            return Err(three_dots(revision));
        }
        let end = revision.find(['~', '^']).unwrap_or(revision.len());
        let (name, mut steps) = revision.split_at(end);
        if name.contains("@{") || name.contains("..") || name.contains(':') || name.contains(' ') {
            return Err(unsupported(revision));
        }
        let id = self.named(if name == "@" { "HEAD" } else { name })?;
        let mut commit = self.peel(&id)?;
        while let Some(step) = steps.chars().next() {
            let rest = steps.get(1..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix("{commit}").or(rest.strip_prefix("{}")) {
                steps = after;
                continue;
            }
            let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at(digits);
            if !(after.is_empty() || after.starts_with(['~', '^'])) {
                return Err(unsupported(revision));
            }
            let number = if number.is_empty() { Ok(1) } else { number.parse::<u32>() };
            let number = number.ok().filter(|number| *number <= STEPS_MAX);
            let number = number.ok_or_else(|| unsupported(revision))?;
            let (count, parent) = if step == '~' { (number, 1) } else { (number.min(1), number) };
            for _ in 0..count {
                let index = usize::try_from(parent).unwrap_or_default().saturating_sub(1);
                let Some(id) = commit.parents.get(index) else {
                    return Err(self.no_parent(revision, &commit));
                };
                commit = self.commit(id)?;
            }
            steps = after;
        }
        Ok(commit)
    }

    fn no_parent(&self, revision: &str, commit: &Commit) -> ToolFailure {
        let reason = match commit.parents.len() {
            0 if self.is_shallow() => "where the history of this shallow clone ends",
            0 => "the first commit",
            1 => "which has one parent",
            _ => "which has fewer parents",
        };
        ToolFailure::new(format!("`{revision}` goes back behind {}, {reason}", commit.id.short()))
            .suggestion("call git_log to see the commits")
            .permanent()
    }

    /// Returns the object with a name.
    fn named(&self, name: &str) -> Result<Id, ToolFailure> {
        let candidates = [
            name.to_owned(),
            format!("refs/{name}"),
            format!("refs/tags/{name}"),
            format!("refs/heads/{name}"),
            format!("refs/remotes/{name}"),
            format!("refs/remotes/{name}/HEAD"),
        ];
        for candidate in &candidates {
            if (candidate == "HEAD" || candidate.starts_with("refs/"))
                && let Some(id) = self.reference(candidate)?
            {
                return Ok(id);
            }
        }
        if name == "HEAD" {
            let branch = self.head_branch().unwrap_or_default();
            let branch = branch.strip_prefix("refs/heads/").unwrap_or(&branch);
            return Err(ToolFailure::new(format!("the branch `{branch}` has no commits"))
                .suggestion(self.names()?)
                .permanent());
        }
        let prefix = Prefix::from_hex(name.as_bytes()).filter(|_| name.len() >= 4);
        if let Some(prefix) = prefix {
            let found = self.objects.find_prefix(&prefix)?;
            match found.as_slice() {
                [] => {}
                [id] => return Ok(*id),
                several => return self.only_commit(name, several),
            }
        }
        Err(ToolFailure::new(format!("there is no branch, tag or commit `{name}`"))
            .suggestion(self.names()?)
            .permanent())
    }

    /// Returns the only commit among objects whose names begin with the same digits.
    fn only_commit(&self, name: &str, ids: &[Id]) -> Result<Id, ToolFailure> {
        let mut commits = Vec::new();
        for id in ids.iter().take(NAMES_MAX) {
            if self.objects.read(id)?.kind == Kind::Commit {
                commits.push(*id);
            }
        }
        if let [commit] = commits.as_slice() {
            return Ok(*commit);
        }
        let all: Vec<_> = ids.iter().take(NAMES_MAX).map(Id::short).collect();
        Err(ToolFailure::new(format!("`{name}` is the beginning of several names"))
            .suggestion(format!("pass more digits: `{}`", all.join("`, `")))
            .permanent())
    }

    /// Returns the commit that an object is, or that a tag points to.
    pub(crate) fn peel(&self, id: &Id) -> Result<Commit, Error> {
        let mut id = *id;
        for _ in 0..TAGS_MAX {
            let object = self.objects.read(&id)?;
            match object.kind {
                Kind::Commit => return self.commit(&id),
                Kind::Tag => id = Tag::parse(&object.data)?.target,
                Kind::Tree | Kind::Blob => {
                    let found = object.kind.name();
                    return Err(Error::WrongKind { id, expected: "commit", found });
                }
            }
        }
        Err(Error::Damaged("a tag points to too many others"))
    }

    /// Lists branches and tags, for a suggestion.
    fn names(&self) -> Result<String, Error> {
        let references = self.references()?;
        let mut names: Vec<_> = references
            .keys()
            .filter_map(|name| {
                name.strip_prefix("refs/heads/")
                    .or(name.strip_prefix("refs/tags/"))
                    .or(name.strip_prefix("refs/remotes/"))
            })
            .collect();
        if names.is_empty() {
            return Ok("pass the name of a commit: there are no branches and tags".to_owned());
        }
        let more = if names.len() > NAMES_MAX { " and more" } else { "" };
        names.truncate(NAMES_MAX);
        Ok(format!("there are `{}`{more}", names.join("`, `")))
    }
}

fn unsupported(revision: &str) -> ToolFailure {
    ToolFailure::new(format!("`{revision}` is not a revision that this tool understands"))
        .suggestion("pass a branch, a tag or the name of a commit, with `~N` or `^N` if needed")
        .permanent()
}

fn three_dots(revision: &str) -> ToolFailure {
    ToolFailure::new(format!("`{revision}` has three dots, which this tool does not support"))
        .suggestion(
            "pass one commit; git_log also takes a range with two dots, such as `v1.0..main`",
        )
        .permanent()
}
