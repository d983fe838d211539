//! Commits and annotated tags.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::id::Id;
use crate::time::Time;

/// Commit.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) id: Id,
    pub(crate) tree: Id,
    pub(crate) parents: Vec<Id>,
    pub(crate) author: Signature,
    /// Seconds since 1970 at which it was committed.
    pub(crate) committed: i64,
    pub(crate) message: String,
}

/// Name, address and time in a commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) time: Time,
}

/// Commit in a result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Abbreviated name of the commit.
    commit: String,
    author: String,
    email: String,
    /// Time of the author, with the offset of its time zone.
    date: String,
    /// First line of the message.
    subject: String,
    /// Rest of the message, cut to 2000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Abbreviated names of the parents: none for the first commit, two or more for a merge.
    parents: Vec<String>,
}

/// Maximum length of a message in a result, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 2000;

impl Commit {
    /// Parses the content of a commit.
    pub(crate) fn parse(id: Id, data: &[u8]) -> Result<Self, Error> {
        const INVALID: Error = Error::Damaged("a commit is invalid");
        let (headers, message) = split_message(data);
        let mut tree = None;
        let mut parents = Vec::new();
        let mut author = Signature::default();
        let mut committed = 0;
        for (key, value) in headers {
            match key {
                b"tree" if tree.is_none() => tree = Id::from_hex(value),
                b"parent" => parents.push(Id::from_hex(value).ok_or(INVALID)?),
                b"author" => author = Signature::parse(value),
                b"committer" => committed = Signature::parse(value).time.seconds,
                _ => {}
            }
        }
        let message = String::from_utf8_lossy(message).into_owned();
        Ok(Self { id, tree: tree.ok_or(INVALID)?, parents, author, committed, message })
    }

    pub(crate) fn subject(&self) -> &str {
        subject(&self.message)
    }

    /// Returns the commit for a result, with or without the body of its message.
    pub(crate) fn summary(&self, with_body: bool) -> Summary {
        let message = self.message.trim();
        let body = message.split_once('\n').map(|(_, body)| body.trim());
        let body = body.filter(|body| with_body && !body.is_empty());
        Summary {
            commit: self.id.short(),
            author: self.author.name.clone(),
            email: self.author.email.clone(),
            date: self.author.time.to_string(),
            subject: cut(self.subject()),
            body: body.map(cut),
            parents: self.parents.iter().map(Id::short).collect(),
        }
    }
}

/// Returns the first line of a message.
pub(crate) fn subject(message: &str) -> &str {
    message.trim_start().lines().next().unwrap_or_default().trim_end()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "…",
        None => text.to_owned(),
    }
}

/// Returns the headers, as keys with values, and the message.
fn split_message(data: &[u8]) -> (impl Iterator<Item = (&[u8], &[u8])>, &[u8]) {
    let end = data.windows(2).position(|pair| pair == b"\n\n");
    let (head, message) = match end.and_then(|end| data.split_at_checked(end)) {
        Some((head, message)) => (head, message.get(2..).unwrap_or_default()),
        None => (data, &[][..]),
    };
    let headers = head.split(|byte| *byte == b'\n').filter_map(|line| {
        let space = line.iter().position(|byte| *byte == b' ')?;
        Some((line.get(..space)?, line.get(space + 1..)?))
    });
    (headers, message)
}

impl Signature {
    /// Parses `NAME <EMAIL> SECONDS OFFSET`. Missing parts are empty or 0.
    fn parse(value: &[u8]) -> Self {
        let value = String::from_utf8_lossy(value);
        let (name, rest) = value.split_once('<').unwrap_or((&value, ""));
        let (email, time) = rest.rsplit_once('>').unwrap_or((rest, ""));
        Self {
            name: name.trim().to_owned(),
            email: email.trim().to_owned(),
            time: Time::parse_raw(time),
        }
    }
}

/// Annotated tag.
#[derive(Debug)]
pub(crate) struct Tag {
    pub(crate) target: Id,
    pub(crate) tagger: Signature,
    pub(crate) message: String,
}

impl Tag {
    /// Parses the content of a tag.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, Error> {
        let (headers, message) = split_message(data);
        let mut target = None;
        let mut tagger = Signature::default();
        for (key, value) in headers {
            match key {
                b"object" => target = Id::from_hex(value),
                b"tagger" => tagger = Signature::parse(value),
                _ => {}
            }
        }
        let target = target.ok_or(Error::Damaged("a tag is invalid"))?;
        Ok(Self { target, tagger, message: String::from_utf8_lossy(message).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Commit, Tag};
    use crate::id::Id;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn parse(text: &str) -> Option<Commit> {
        Commit::parse(Id::from_hex(ID.as_bytes())?, text.replace("ID", ID).as_bytes()).ok()
    }

    #[test]
    fn commits_have_headers_and_a_message() {
        let commit = parse(
            "tree ID\nparent ID\nparent ID\nauthor Ada L <a@b> 1700000000 +0130\n\
             committer C <c@d> 1700000001 -0800\ngpgsig -----BEGIN\n x\n\nOne\n\nTwo\nthree\n",
        )
        .unwrap();
        assert_eq!((commit.parents.len(), commit.committed), (2, 1_700_000_001));
        let summary = commit.summary(true);
        assert_eq!(summary.author, "Ada L");
        assert_eq!(summary.date, "2023-11-14T23:43:20+01:30");
        assert_eq!((&*summary.subject, summary.body.as_deref()), ("One", Some("Two\nthree")));
    }

    #[test]
    fn damaged_commits_are_errors_or_have_gaps() {
        assert!(parse("").is_none());
        assert!(parse("tree 12\n\nx").is_none());
        assert!(parse("tree ID\nparent 12\n\nx").is_none());
        let commit = parse("tree ID\nauthor Nobody").unwrap();
        assert_eq!(commit.summary(true).date, "1970-01-01T00:00:00+00:00");
        assert!(Tag::parse(b"object 12\n").is_err());
    }
}
