//! Names of tables and columns.

use std::cell::RefCell;
use std::collections::BTreeSet;

use cofferdam_sdk::ToolFailure;
use sqlparser::ast::Ident;

use crate::names;
use crate::source::Column;
use crate::value::Kind;

/// Columns of the tables of a `FROM`, in the order of a row.
#[derive(Default)]
pub(crate) struct Scope {
    tables: Vec<Table>,
    kinds: Vec<Kind>,
    /// Columns of `USING` that the table on the left has too.
    merged: BTreeSet<usize>,
    used: RefCell<BTreeSet<usize>>,
}

struct Table {
    name: String,
    start: usize,
    columns: Vec<String>,
}

impl Scope {
    /// Adds a table and returns the index of its first column.
    pub(crate) fn add(&mut self, name: String, columns: &[Column]) -> Result<usize, ToolFailure> {
        if self.tables.iter().any(|table| table.name.eq_ignore_ascii_case(&name)) {
            return Err(ToolFailure::new(format!("there are two tables `{name}`"))
                .suggestion("give them different names with `AS`")
                .permanent());
        }
        let start = self.kinds.len();
        self.kinds.extend(columns.iter().map(|column| column.kind));
        let columns = columns.iter().map(|column| column.name.clone()).collect();
        self.tables.push(Table { name, start, columns });
        Ok(start)
    }

    /// Hides a column of `USING` from unqualified names.
    pub(crate) fn merge(&mut self, index: usize) {
        self.merged.insert(index);
    }

    /// Marks a column as looked up.
    pub(crate) fn use_column(&self, index: usize) {
        self.used.borrow_mut().insert(index);
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Returns which of a table's columns were looked up.
    pub(crate) fn wanted(&self, start: usize, width: usize) -> Vec<bool> {
        let used = self.used.borrow();
        (start..start + width).map(|index| used.contains(&index)).collect()
    }

    /// Returns the names and indices of all columns, or of those of a table.
    pub(crate) fn all(&self, table: Option<&str>) -> Result<Vec<(String, usize)>, ToolFailure> {
        let tables: Vec<_> = match table {
            None => self.tables.iter().collect(),
            Some(name) => vec![self.table(name)?],
        };
        let all = tables.iter().flat_map(|table| {
            let indices = table.start..;
            table.columns.iter().cloned().zip(indices)
        });
        let all: Vec<_> =
            all.filter(|(_, index)| table.is_some() || !self.merged.contains(index)).collect();
        self.used.borrow_mut().extend(all.iter().map(|(_, index)| *index));
        Ok(all)
    }

    /// Returns the index of a column of a table, or of the only table that has it.
    pub(crate) fn find(&self, table: Option<&str>, column: &Ident) -> Result<usize, ToolFailure> {
        let name = column.value.as_str();
        let indices = self.indices(table, name)?;
        let unmerged: Vec<_> = indices
            .iter()
            .filter(|index| table.is_some() || !self.merged.contains(index))
            .collect();
        match unmerged.as_slice() {
            [index] => {
                self.used.borrow_mut().insert(**index);
                Ok(**index)
            }
            [] => Err(self.missing(table, column)),
            _ => {
                let tables = self
                    .tables
                    .iter()
                    .filter(|table| table.columns.iter().any(|it| it.eq_ignore_ascii_case(name)));
                let qualified: Vec<_> =
                    tables.map(|table| format!("`{}.{name}`", table.name)).collect();
                Err(ToolFailure::new(format!("the column `{name}` is ambiguous"))
                    .suggestion(format!("pass {}", qualified.join(" or ")))
                    .permanent())
            }
        }
    }

    /// Returns columns of exactly this name, or else those that differ in case only.
    fn indices(&self, table: Option<&str>, name: &str) -> Result<Vec<usize>, ToolFailure> {
        let tables: Vec<_> = match table {
            None => self.tables.iter().collect(),
            Some(name) => vec![self.table(name)?],
        };
        let matching = |matches: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let columns = tables.iter().flat_map(|table| table.columns.iter().zip(table.start..));
            columns.filter(|(column, _)| matches(column)).map(|(_, index)| index).collect()
        };
        let exact = matching(&|column| column == name);
        Ok(match exact.is_empty() {
            true => matching(&|column| column.to_lowercase() == name.to_lowercase()),
            false => exact,
        })
    }

    fn table(&self, name: &str) -> Result<&Table, ToolFailure> {
        let found = self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<_> = self.tables.iter().map(|table| table.name.clone()).collect();
            ToolFailure::new(format!("there is no table `{name}` in `FROM`"))
                .suggestion(format!("the tables are `{}`", names.join("`, `")))
                .permanent()
        })
    }

    fn missing(&self, table: Option<&str>, column: &Ident) -> ToolFailure {
        let name = &column.value;
        let failure = ToolFailure::new(format!("there is no column `{name}`")).permanent();
        if column.quote_style == Some('"') && table.is_none() && self.tables.is_empty() {
            return failure.suggestion("text is in single quotes: `'…'`");
        }
        let tables = self.tables.iter().filter(|it| table.is_none_or(|name| it.name == name));
        let columns: Vec<_> = tables.flat_map(|table| table.columns.iter().cloned()).collect();
        let hint = match column.quote_style {
            Some('"') => "; text is in single quotes: `'…'`",
            _ => "",
        };
        failure.suggestion(names::suggestion("columns", name, &columns) + hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        let columns = |names: &[&str]| -> Vec<Column> {
            let column = |name: &&str| Column { name: (*name).to_owned(), kind: Kind::Text };
            names.iter().map(column).collect()
        };
        let mut scope = Scope::default();
        assert_eq!(scope.add("a".to_owned(), &columns(&["id", "Name"])).unwrap(), 0);
        assert_eq!(scope.add("b".to_owned(), &columns(&["id", "x", "X"])).unwrap(), 2);
        assert!(scope.add("A".to_owned(), &[]).is_err());
        scope
    }

    #[test]
    fn columns_are_found() {
        let mut scope = scope();
        let find = |scope: &Scope, table, name: &str| {
            scope.find(table, &Ident::new(name)).map_err(|failure| failure.to_string())
        };
        assert_eq!(find(&scope, None, "name"), Ok(1));
        assert_eq!(find(&scope, None, "X"), Ok(4));
        assert_eq!(find(&scope, Some("B"), "id"), Ok(2));
        assert_eq!(scope.wanted(0, 5), [false, true, true, false, true]);
        assert_eq!(
            find(&scope, None, "id").unwrap_err(),
            "the column `id` is ambiguous; pass `a.id` or `b.id`"
        );
        assert_eq!(
            find(&scope, None, "nmae").unwrap_err(),
            "there is no column `nmae`; did you mean `Name`? The columns are `id`, `Name`, `id`, \
             `x`, `X`"
        );
        assert_eq!(
            find(&scope, Some("c"), "id").unwrap_err(),
            "there is no table `c` in `FROM`; the tables are `a`, `b`"
        );
        scope.merge(2);
        assert_eq!(find(&scope, None, "id"), Ok(0));
        let names: Vec<_> = scope.all(None).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["id", "Name", "x", "X"]);
    }
}
