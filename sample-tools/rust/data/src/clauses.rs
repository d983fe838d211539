//! Clauses of a query: the select list, `ORDER BY`, `LIMIT` and names.

use cofferdam_sdk::ToolFailure;
use sqlparser::ast::{
    Expr, Ident, LimitClause, ObjectName, ObjectNamePart, OrderByOptions, OrderBySort, Select,
    SelectItem, SelectItemQualifiedWildcardKind, TableAlias, Value as Literal,
};

use crate::binder::{Binder, unsupported};
use crate::collector::{Direction, Window};
use crate::expression::Expression;
use crate::names::shorten;
use crate::scope::Scope;
use crate::source::Column;

/// An item of a select list.
pub(crate) struct Item<'q> {
    pub(crate) expr: Option<&'q Expr>,
    pub(crate) explicit: Option<&'q Ident>,
    /// Name and index of a column of `*`.
    column: Option<(String, usize)>,
}

impl<'q> Item<'q> {
    pub(crate) fn name(&self) -> String {
        match (self.explicit, &self.column, self.expr) {
            (Some(alias), _, _) => alias.value.clone(),
            (None, Some((name, _)), _) => name.clone(),
            (None, None, Some(Expr::Identifier(name))) => name.value.clone(),
            (None, None, Some(Expr::CompoundIdentifier(parts))) => {
                parts.last().map(|name| name.value.clone()).unwrap_or_default()
            }
            (None, None, Some(expr)) => shorten(&expr.to_string()),
            (None, None, None) => String::new(),
        }
    }

    pub(crate) fn alias(&self) -> Option<(String, &'q Expr)> {
        Some((self.explicit?.value.to_lowercase(), self.expr?))
    }

    pub(crate) fn bind(&self, binder: &Binder<'_>) -> Result<Expression, ToolFailure> {
        match (self.expr, &self.column, &binder.groups) {
            (Some(expr), _, _) => binder.bind(expr),
            (None, Some((_, index)), None) => Ok(Expression::Column(*index)),
            (None, Some((_, index)), Some(groups)) => groups
                .keys
                .iter()
                .position(|key| *key == Expression::Column(*index))
                .map(Expression::Column)
                .ok_or_else(|| unsupported("`*` with groups").suggestion("name the columns")),
            (None, None, _) => Err(unsupported("this select list")),
        }
    }

    pub(crate) fn bind_row(&self, binder: &Binder<'_>) -> Result<Expression, ToolFailure> {
        match (self.expr, &self.column) {
            (Some(expr), _) => binder.bind_row(expr),
            (None, Some((_, index))) => Ok(Expression::Column(*index)),
            (None, None) => Err(unsupported("this select list")),
        }
    }
}

pub(crate) fn items<'q>(select: &'q Select, scope: &Scope) -> Result<Vec<Item<'q>>, ToolFailure> {
    let mut items = Vec::new();
    let all = |table: Option<&str>| {
        let columns = scope.all(table)?.into_iter();
        let items = columns.map(|it| Item { expr: None, explicit: None, column: Some(it) });
        Ok::<_, ToolFailure>(items)
    };
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                items.push(Item { expr: Some(expr), explicit: None, column: None });
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                items.push(Item { expr: Some(expr), explicit: Some(alias), column: None });
            }
            SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                items.extend(all(None)?);
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(table),
                options,
            ) if options.to_string().is_empty() => {
                items.extend(all(Some(&identifier(table)?.value))?);
            }
            other => return Err(unsupported(&format!("`{}`", shorten(&other.to_string())))),
        }
    }
    Ok(items)
}

pub(crate) fn directions(
    order: &[(&Expr, &OrderByOptions)],
) -> Result<Vec<Direction>, ToolFailure> {
    order
        .iter()
        .map(|(_, options)| {
            let is_descending = match &options.sort {
                None | Some(OrderBySort::Asc) => false,
                Some(OrderBySort::Desc) => true,
                Some(OrderBySort::Using(_)) => return Err(unsupported("`ORDER BY … USING`")),
            };
            Ok(Direction { is_descending, puts_nulls_first: options.nulls_first == Some(true) })
        })
        .collect()
}

/// Returns the index of an output column that an integer names.
pub(crate) fn ordinal(expr: &Expr, columns: usize) -> Result<Option<usize>, ToolFailure> {
    let Expr::Value(literal) = expr else { return Ok(None) };
    let Literal::Number(digits, _) = &literal.value else { return Ok(None) };
    let index = digits.parse().ok().and_then(|it: usize| it.checked_sub(1));
    match index.filter(|index| *index < columns) {
        Some(index) => Ok(Some(index)),
        None => Err(ToolFailure::new(format!("there is no column {digits} in the result"))
            .suggestion(format!("pass a number from 1 to {columns}"))
            .permanent()),
    }
}

pub(crate) fn window(clause: Option<&LimitClause>) -> Result<Window, ToolFailure> {
    let number = |expr: &Expr| -> Result<usize, ToolFailure> {
        let digits = expr.to_string();
        digits.parse().map_err(|_| {
            ToolFailure::new(format!("`LIMIT` and `OFFSET` need a number, found `{digits}`"))
                .permanent()
        })
    };
    let (limit, offset) = match clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            refuse(&[(!limit_by.is_empty(), "`LIMIT … BY`")])?;
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
    };
    Ok(Window {
        offset: offset.map_or(Ok(0), number)?,
        limit: limit.map_or(Ok(usize::MAX), number)?,
    })
}

pub(crate) fn identifier(name: &ObjectName) -> Result<&Ident, ToolFailure> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Ok(name),
        _ => Err(unsupported(&format!("the name `{name}`"))
            .suggestion("put the path of a file in single quotes: `FROM 'sales.csv'`")),
    }
}

pub(crate) fn rename(columns: &mut [Column], alias: &TableAlias) -> Result<(), ToolFailure> {
    if alias.columns.len() > columns.len() {
        return Err(ToolFailure::new(format!(
            "`{alias}` has {} names for {} columns",
            alias.columns.len(),
            columns.len()
        ))
        .permanent());
    }
    for (column, name) in columns.iter_mut().zip(&alias.columns) {
        column.name.clone_from(&name.name.value);
    }
    Ok(())
}

pub(crate) fn refuse(clauses: &[(bool, &str)]) -> Result<(), ToolFailure> {
    match clauses.iter().find(|(is_used, _)| *is_used) {
        Some((_, clause)) => Err(unsupported(clause)),
        None => Ok(()),
    }
}
