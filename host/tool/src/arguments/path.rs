//! Path of a value in the arguments (`ARG-32`).

use std::fmt;

/// A path as a chain back to the argument object. It lives on the stack and costs nothing until it
/// is displayed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Name(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    pub(super) fn name<'n>(&'n self, name: &'n str) -> Path<'n>
    where
        'p: 'n,
    {
        Path::Name(self, name)
    }

    pub(super) fn index(&'p self, index: usize) -> Path<'p> {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Name(Self::Root, name) if is_plain(name) => f.write_str(name),
            Self::Name(parent, name) if is_plain(name) => write!(f, "{parent}.{name}"),
            Self::Name(parent, name) => write!(f, "{parent}[{}]", serde_json::Value::from(*name)),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
