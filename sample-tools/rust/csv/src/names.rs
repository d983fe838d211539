//! Finds the name that a misspelled one means.

/// Maximum number of names in a suggestion.
const NAMES_MAX: usize = 60;
/// Maximum characters of a name that is shown.
const NAME_LENGTH_MAX: usize = 200;

/// Returns at most `length` characters of a text, with `…` if there are more.
pub(crate) fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

/// Returns the name of a column as it is shown to the model.
pub(crate) fn shown(name: &str) -> String {
    cut(name, NAME_LENGTH_MAX)
}

/// Returns a suggestion that lists the names, the nearest one first.
pub(crate) fn suggestion(wanted: &str, names: &[String]) -> String {
    let listed: Vec<_> = names.iter().take(NAMES_MAX).map(|name| shown(name)).collect();
    let more = if names.len() > NAMES_MAX { " and more" } else { "" };
    let all = format!("he columns are `{}`{more}", listed.join("`, `"));
    match nearest(wanted, names) {
        Some(name) => format!("did you mean `{name}`? T{all}"),
        None => format!("t{all}"),
    }
}

/// Returns the name at the smallest distance, unless that is more than half of the longer name.
fn nearest<'a>(wanted: &str, names: &'a [String]) -> Option<&'a String> {
    let wanted = fold(wanted);
    names
        .iter()
        .map(|name| (distance(&wanted, &fold(name)), name))
        .filter(|(distance, name)| distance * 2 <= wanted.len().max(name.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn fold(name: &str) -> Vec<char> {
    name.to_lowercase().chars().collect()
}

/// Returns the number of characters to insert, delete or replace (Levenshtein).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (taken, a) in from.iter().enumerate() {
        let mut diagonal = taken;
        let mut left = taken + 1;
        for (b, cell) in to.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = taken + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, suggestion};

    fn check(wanted: &str, expected: &str) {
        let names = ["amount", "Region", "größe"].map(String::from);
        assert_eq!(suggestion(wanted, &names), expected, "{wanted}");
    }

    #[test]
    fn finds_the_nearest() {
        let all = "he columns are `amount`, `Region`, `größe`";
        check("Amount", &format!("did you mean `amount`? T{all}"));
        check("regoin", &format!("did you mean `Region`? T{all}"));
        check("GRÖSSE", &format!("did you mean `größe`? T{all}"));
        check("customer", &format!("t{all}"));
        check("", &format!("t{all}"));
    }

    #[test]
    fn long_lists_are_cut() {
        let mut names = vec!["a".repeat(300)];
        names.extend((1..100).map(|number| number.to_string()));
        let found = suggestion("wanted", &names);
        assert!(found.starts_with(&format!("the columns are `{}…`, `1`", "a".repeat(200))));
        assert!(found.ends_with("`58`, `59` and more"), "{found}");
    }

    #[test]
    fn measures() {
        let check = |from: &str, to: &str, expected| {
            let (from, to): (Vec<_>, Vec<_>) = (from.chars().collect(), to.chars().collect());
            assert_eq!((distance(&from, &to), distance(&to, &from)), (expected, expected));
        };
        check("", "", 0);
        check("", "abc", 3);
        check("kitten", "sitting", 3);
        check("flaw", "lawn", 2);
        check("same", "same", 0);
    }
}
