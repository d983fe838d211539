//! Lists branches and tags.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commit::{Tag, subject};
use crate::error::Error;
use crate::id::Id;
use crate::objects::Kind;
use crate::repository::Repository;

/// Branches and tags.
#[derive(Debug, Serialize, JsonSchema)]
pub struct References {
    /// Branch that is checked out; absent if `HEAD` is a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    branches: Vec<Reference>,
    /// Branches of other repositories, as of the last fetch.
    remote_branches: Vec<Reference>,
    tags: Vec<Reference>,
    /// True if some were dropped because of `count`.
    truncated: bool,
}

/// Branch or tag.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reference {
    name: String,
    /// Abbreviated name of the commit; absent if it is not in the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// Time of the commit or of the annotated tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    /// First line of the message of the annotated tag, or else of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

/// Lists the branches and tags of a git repository, the latest first.
#[tool(title = "Git branches and tags", read_only, idempotent, open_world = false, output_schema)]
pub fn git_references(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// List only names that contain this.
    contains: Option<String>,
    /// Maximum number of branches, and of tags, to return, up to 500.
    #[tool(default = 50)]
    count: usize,
) -> Result<References, ToolFailure> {
    let repository = Repository::open(&repository)?;
    let count = count.min(500);
    let head = repository.head_branch();
    let head = head.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
    let mut groups = [("refs/heads/", vec![]), ("refs/remotes/", vec![]), ("refs/tags/", vec![])];
    for (full_name, id) in repository.references()? {
        for (prefix, found) in &mut groups {
            if let Some(name) = full_name.strip_prefix(*prefix)
                && contains.as_ref().is_none_or(|part| name.contains(part))
            {
                found.push(describe(&repository, name, &id)?);
            }
        }
    }
    let mut truncated = false;
    let [branches, remote_branches, tags] = groups.map(|(_, mut found)| {
        found.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.name.cmp(&y.name)));
        truncated |= found.len() > count;
        found.into_iter().take(count).map(|(_, reference)| reference).collect()
    });
    Ok(References { head, branches, remote_branches, tags, truncated })
}

/// Returns a reference with its time in seconds.
fn describe(repository: &Repository, name: &str, id: &Id) -> Result<(i64, Reference), Error> {
    let mut reference =
        Reference { name: name.to_owned(), commit: None, date: None, subject: None };
    let commit = match repository.peel(id) {
        Ok(commit) => commit,
        // A tag of something else, or a branch that a partial clone lacks.
        Err(Error::WrongKind { .. } | Error::Missing(_)) => return Ok((i64::MIN, reference)),
        Err(error) => return Err(error),
    };
    let mut time = commit.author.time;
    let mut text = commit.subject().to_owned();
    let object = repository.objects.read(id)?;
    if object.kind == Kind::Tag {
        let tag = Tag::parse(&object.data)?;
        text = subject(&tag.message).to_owned();
        if tag.tagger.time.seconds > 0 {
            time = tag.tagger.time;
        }
    }
    reference.commit = Some(commit.id.short());
    reference.date = Some(time.to_string());
    reference.subject = Some(text);
    Ok((time.seconds, reference))
}
