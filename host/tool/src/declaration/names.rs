//! Names of tools that a user or a model could confuse (`ARG-43`).

use std::collections::HashMap;

use super::{DeclarationError, Reason};

/// Rejects names that are equal, differ only in case, or look alike.
pub(super) fn check_distinct<'n>(
    names: impl Iterator<Item = &'n str>,
) -> Result<(), DeclarationError> {
    taken(names).next().map_or(Ok(()), Err)
}

/// Returns an error for every name that is confusable with an earlier one.
pub(super) fn taken<'n>(
    names: impl Iterator<Item = &'n str>,
) -> impl Iterator<Item = DeclarationError> {
    let (mut folded, mut drawn) = (HashMap::new(), HashMap::new());
    names.filter_map(move |name| {
        let other =
            folded.insert(name.to_ascii_lowercase(), name).or(drawn.insert(skeleton(name), name))?;
        Some(DeclarationError::at(name, "", &Reason::NameTaken { other: other.to_owned() }))
    })
}

/// Returns a key that is equal for names that look alike, after Unicode's table of confusable
/// characters (UTS 39). Tool names are ASCII (`ARG-38`), so only its ASCII rows matter: `0` and
/// `O`; `1`, `I` and `l`; `m` and `rn`.
///
/// Case is not folded here. `I` looks like `l` and equals `i` by case; both at once would make
/// `mail` and `mall` one name.
fn skeleton(name: &str) -> String {
    let mut drawn = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0' => drawn.push('O'),
            '1' | 'I' => drawn.push('l'),
            'm' => drawn.push_str("rn"),
            other => drawn.push(other),
        }
    }
    drawn
}
