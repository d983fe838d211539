//! Runs a query.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::rc::Rc;

use cofferdam_sdk::ToolFailure;
use sqlparser::ast::{
    self, Distinct, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, OrderByKind,
    OrderByOptions, Query, Select, SetExpr, SetOperator, SetQuantifier, TableFactor,
};

use crate::aggregate::State;
use crate::binder::{Binder, Groups, unsupported};
use crate::budget::Budget;
use crate::clauses::{Item, directions, identifier, items, ordinal, refuse, rename, window};
use crate::collector::{Collector, Window, size};
use crate::expression::Expression;
use crate::join::{self, Joined};
use crate::names::{self, shorten};
use crate::scope::Scope;
use crate::source::{self, Column, Row, Rows, Source};
use crate::value::{Kind, Value};

/// Maximum depth of subqueries.
const DEPTH_MAX: usize = 8;

/// Tables and memory of a query and its subqueries.
pub(crate) struct Context<'c> {
    /// Paths of files by the names that a query may use for them.
    files: &'c BTreeMap<String, String>,
    /// Results of `WITH`, the innermost last.
    with: Vec<(String, Rc<Rows>)>,
    budget: &'c Budget,
    /// Results of subqueries by their addresses.
    results: &'c RefCell<BTreeMap<usize, Rc<Rows>>>,
    depth: Cell<usize>,
}

/// Runs a query and returns at most `rows_max` rows.
pub(crate) fn run(
    query: &Query,
    files: &BTreeMap<String, String>,
    rows_max: usize,
) -> Result<Rows, ToolFailure> {
    let (budget, results) = (Budget::default(), RefCell::default());
    let context = Context {
        files,
        with: Vec::new(),
        budget: &budget,
        results: &results,
        depth: Cell::new(0),
    };
    context.query(query, rows_max)
}

impl Context<'_> {
    /// Returns the value of a subquery in an expression: one column of at most one row.
    pub(crate) fn scalar(&self, query: &Query) -> Result<Value, ToolFailure> {
        let result = self.subquery(query, usize::MAX)?;
        match result.rows.as_slice() {
            _ if result.columns.len() != 1 => Err(one_column(&result)),
            [] => Ok(Value::Null),
            [row] => Ok(row.first().cloned().unwrap_or(Value::Null)),
            rows => Err(ToolFailure::new(format!(
                "a subquery in an expression has {} rows, expected one",
                rows.len()
            ))
            .suggestion("use an aggregate, `LIMIT 1` or `IN`")
            .permanent()),
        }
    }

    /// Returns the values of a subquery of `IN`.
    pub(crate) fn set(&self, query: &Query) -> Result<Rc<BTreeSet<Value>>, ToolFailure> {
        let result = self.subquery(query, usize::MAX)?;
        if result.columns.len() != 1 {
            return Err(one_column(&result));
        }
        Ok(Rc::new(result.rows.iter().filter_map(|row| row.first().cloned()).collect()))
    }

    /// Returns whether a subquery has rows.
    pub(crate) fn exists(&self, query: &Query) -> Result<bool, ToolFailure> {
        Ok(!self.subquery(query, 1)?.rows.is_empty())
    }

    fn subquery(&self, query: &Query, rows_max: usize) -> Result<Rc<Rows>, ToolFailure> {
        let address = std::ptr::from_ref(query).addr();
        if let Some(result) = self.results.borrow().get(&address) {
            return Ok(Rc::clone(result));
        }
        let result = Rc::new(self.query(query, rows_max)?);
        self.results.borrow_mut().insert(address, Rc::clone(&result));
        Ok(result)
    }

    fn query(&self, query: &Query, rows_max: usize) -> Result<Rows, ToolFailure> {
        if self.depth.get() >= DEPTH_MAX {
            return Err(ToolFailure::new(format!(
                "subqueries are nested more than {DEPTH_MAX} levels deep"
            ))
            .permanent());
        }
        refuse(&[
            (query.fetch.is_some(), "`FETCH`; use `LIMIT`: it"),
            (!query.locks.is_empty(), "`FOR UPDATE`"),
            (query.for_clause.is_some(), "`FOR XML` or `FOR JSON`"),
            (query.settings.is_some() || query.format_clause.is_some(), "`SETTINGS` or `FORMAT`"),
            (!query.pipe_operators.is_empty(), "a pipe operator"),
        ])?;
        let mut inner =
            Context { with: self.with.clone(), depth: Cell::new(self.depth.get() + 1), ..*self };
        if let Some(with) = &query.with {
            refuse(&[(with.recursive, "`WITH RECURSIVE`")])?;
            for table in &with.cte_tables {
                let mut rows = inner.query(&table.query, usize::MAX)?;
                rename(&mut rows.columns, &table.alias)?;
                inner.with.push((table.alias.name.value.to_lowercase(), Rc::new(rows)));
            }
        }
        let mut window = window(query.limit_clause.as_ref())?;
        window.limit = window.limit.min(rows_max);
        let order = match &query.order_by {
            None => Vec::new(),
            Some(order) => match &order.kind {
                OrderByKind::Expressions(expressions) => {
                    expressions.iter().map(|it| (&it.expr, &it.options)).collect()
                }
                OrderByKind::All(_) => return Err(unsupported("`ORDER BY ALL`")),
            },
        };
        match query.body.as_ref() {
            SetExpr::Select(select) => inner.select(select, &order, window),
            body => inner.combination(body, &order, window),
        }
    }

    /// Runs a query in parentheses or a `UNION`, which is sorted by columns of its result.
    fn combination(
        &self,
        body: &SetExpr,
        order: &[(&Expr, &OrderByOptions)],
        window: Window,
    ) -> Result<Rows, ToolFailure> {
        let rows = self.body(body)?;
        let mut scope = Scope::default();
        scope.add(String::new(), &rows.columns)?;
        let binder = Binder::new(&scope, self);
        let keys = order.iter().map(|(expr, _)| match ordinal(expr, rows.columns.len())? {
            Some(index) => Ok(Expression::Column(index)),
            None => binder.bind_row(expr),
        });
        let keys = keys.collect::<Result<Vec<_>, ToolFailure>>()?;
        let mut collector = Collector::new(directions(order)?, window, false, self.budget);
        for row in rows.rows {
            let keys = keys.iter().map(|key| key.value(&row)).collect::<Result<_, _>>()?;
            if collector.add(keys, row)?.is_break() {
                break;
            }
        }
        Ok(Rows { columns: rows.columns, rows: collector.finish() })
    }

    fn body(&self, body: &SetExpr) -> Result<Rows, ToolFailure> {
        let all = Window { offset: 0, limit: usize::MAX };
        match body {
            SetExpr::Select(select) => self.select(select, &[], all),
            SetExpr::Query(query) => self.query(query, usize::MAX),
            SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } => {
                let (mut left, right) = (self.body(left)?, self.body(right)?);
                if left.columns.len() != right.columns.len() {
                    return Err(ToolFailure::new(format!(
                        "`UNION` joins {} and {} columns",
                        left.columns.len(),
                        right.columns.len()
                    ))
                    .suggestion("select the same number of columns on both sides")
                    .permanent());
                }
                for (column, other) in left.columns.iter_mut().zip(&right.columns) {
                    column.kind = column.kind.with(other.kind);
                }
                left.rows.extend(right.rows);
                match set_quantifier {
                    SetQuantifier::All => {}
                    SetQuantifier::None | SetQuantifier::Distinct => {
                        let mut seen = BTreeSet::new();
                        left.rows.retain(|row| seen.insert(row.clone()));
                    }
                    other => return Err(unsupported(&format!("`UNION {other}`"))),
                }
                Ok(left)
            }
            SetExpr::SetOperation { op, .. } => {
                Err(unsupported(&format!("`{op}`"))
                    .suggestion("use `IN` or `NOT IN` with a subquery"))
            }
            _ => Err(unsupported("anything but `SELECT`").suggestion("the files can only be read")),
        }
    }

    fn select(
        &self,
        select: &Select,
        order: &[(&Expr, &OrderByOptions)],
        window: Window,
    ) -> Result<Rows, ToolFailure> {
        refuse(&[
            (select.top.is_some(), "`TOP`; use `LIMIT`: it"),
            (select.into.is_some(), "`INTO`"),
            (select.exclude.is_some(), "`EXCLUDE`"),
            (!select.lateral_views.is_empty(), "`LATERAL VIEW`"),
            (select.prewhere.is_some(), "`PREWHERE`"),
            (!select.connect_by.is_empty(), "`CONNECT BY`"),
            (!select.cluster_by.is_empty(), "`CLUSTER BY`"),
            (!select.distribute_by.is_empty(), "`DISTRIBUTE BY`"),
            (!select.sort_by.is_empty(), "`SORT BY`"),
            (!select.named_window.is_empty(), "`WINDOW`"),
            (select.qualify.is_some(), "`QUALIFY`"),
            (select.value_table_mode.is_some(), "`SELECT AS`"),
            (matches!(select.distinct, Some(Distinct::On(_))), "`DISTINCT ON`"),
        ])?;
        let mut scope = Scope::default();
        let mut tables = self.tables(&select.from, &mut scope)?;
        let items = items(select, &scope)?;
        let mut binder = Binder::new(&scope, self);
        binder.aliases = items.iter().filter_map(Item::alias).collect();
        let filter = select.selection.as_ref().map(|expr| binder.bind_row(expr)).transpose()?;
        let filter = filter.map(Expression::conjuncts).unwrap_or_default();
        for table in &mut tables {
            let conditions = std::mem::take(&mut table.conditions);
            table.use_equalities(&conditions);
            table.conditions = conditions;
            // Rows that the filter drops later need not be joined first.
            if !table.keeps_left && !table.keeps_right {
                table.use_equalities(&filter);
            }
        }
        binder.groups = self.groups(select, &items, order, &binder)?;
        let outputs = items.iter().map(|item| item.bind(&binder)).collect::<Result<Vec<_>, _>>()?;
        let having = select.having.as_ref().map(|expr| binder.bind(expr)).transpose()?;
        let keys = order.iter().map(|(expr, _)| self.order_key(expr, &items, &outputs, &binder));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
        let mut collector = Collector::new(directions(order)?, window, is_distinct, self.budget);
        let mut emit = |row: &[Value]| {
            let sorted = keys.iter().map(|key| key.value(row)).collect::<Result<_, _>>()?;
            let shown = outputs.iter().map(|it| it.value(row)).collect::<Result<_, _>>()?;
            collector.add(sorted, shown)
        };
        let wanted = |table: &Joined<'_>| scope.wanted(table.start, table.width());
        if let Some(groups) = &binder.groups {
            let rows = grouped(groups, self.budget, |sink| {
                join::run(&tables, wanted, self.budget, &mut |row| {
                    if join::all_hold(&filter, &row)? {
                        sink(&row)?;
                    }
                    Ok(ControlFlow::Continue(()))
                })
            })?;
            for row in rows {
                let is_shown = having.as_ref().map_or(Ok(Some(true)), |it| it.truth(&row))?;
                if is_shown == Some(true) && emit(&row)?.is_break() {
                    break;
                }
            }
        } else if window.limit > 0 {
            join::run(
                &tables,
                wanted,
                self.budget,
                &mut |row| match join::all_hold(&filter, &row)? {
                    true => emit(&row),
                    false => Ok(ControlFlow::Continue(())),
                },
            )?;
        }
        let columns = items.iter().zip(&outputs).map(|(item, output)| Column {
            name: item.name(),
            kind: match (output, &binder.groups) {
                (Expression::Column(index), None) => {
                    scope.kinds().get(*index).copied().unwrap_or(Kind::Empty)
                }
                _ => Kind::Empty,
            },
        });
        Ok(Rows { columns: columns.collect(), rows: collector.finish() })
    }

    /// Opens the tables of a `FROM`.
    fn tables(
        &self,
        from: &[ast::TableWithJoins],
        scope: &mut Scope,
    ) -> Result<Vec<Joined<'static>>, ToolFailure> {
        let mut tables = Vec::new();
        for table in from {
            tables.push(self.table(&table.relation, scope)?);
            for join in &table.joins {
                let mut joined = self.table(&join.relation, scope)?;
                let (keeps_left, keeps_right, constraint) = match &join.join_operator {
                    JoinOperator::Join(constraint)
                    | JoinOperator::Inner(constraint)
                    | JoinOperator::CrossJoin(constraint) => (false, false, constraint),
                    JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                        (true, false, constraint)
                    }
                    JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                        (false, true, constraint)
                    }
                    JoinOperator::FullOuter(constraint) => (true, true, constraint),
                    _ => return Err(unsupported(&format!("`{}`", shorten(&join.to_string())))),
                };
                (joined.keeps_left, joined.keeps_right) = (keeps_left, keeps_right);
                joined.conditions = self.constraint(constraint, &joined, scope)?;
                tables.push(joined);
            }
        }
        Ok(tables)
    }

    fn constraint(
        &self,
        constraint: &JoinConstraint,
        joined: &Joined<'_>,
        scope: &mut Scope,
    ) -> Result<Vec<Expression>, ToolFailure> {
        match constraint {
            JoinConstraint::None => Ok(Vec::new()),
            JoinConstraint::On(expr) => Ok(Binder::new(scope, self).bind_row(expr)?.conjuncts()),
            JoinConstraint::Using(names) => names
                .iter()
                .map(|name| {
                    let name = identifier(name)?;
                    let columns = joined.source.columns();
                    let index = columns.iter().position(|it| it.name == name.value);
                    let index = index.map(|index| joined.start + index).ok_or_else(|| {
                        let columns: Vec<_> = columns.iter().map(|it| it.name.clone()).collect();
                        ToolFailure::new(format!("there is no column `{name}` to join with"))
                            .suggestion(names::suggestion("columns", &name.value, &columns))
                            .permanent()
                    })?;
                    scope.merge(index);
                    let left = Expression::Column(scope.find(None, name)?);
                    scope.use_column(index);
                    let right = Expression::Column(index);
                    let equal = crate::expression::Comparison::Equal;
                    Ok(Expression::Compare(equal, Box::new(left), Box::new(right)))
                })
                .collect(),
            JoinConstraint::Natural | JoinConstraint::UsingAlias(..) => {
                Err(unsupported("`NATURAL JOIN`").suggestion("use `JOIN … USING (column)`"))
            }
        }
    }

    fn table(
        &self,
        factor: &TableFactor,
        scope: &mut Scope,
    ) -> Result<Joined<'static>, ToolFailure> {
        let (source, name): (Box<dyn Source>, String) = match factor {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                let table = identifier(name)?;
                let name = table.value.to_lowercase();
                let with = self.with.iter().rev().find(|(it, _)| *it == name);
                let (source, short): (Box<dyn Source>, _) = match with {
                    Some((name, rows)) => (Box::new(Rc::clone(rows)), name.clone()),
                    None => self.file(table)?,
                };
                let has_names = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
                refuse(&[(has_names, "an alias with names of columns")])?;
                (source, alias.as_ref().map_or(short, |alias| alias.name.value.clone()))
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let mut rows = self.query(subquery, usize::MAX)?;
                for row in &rows.rows {
                    self.budget.charge(size(row))?;
                }
                let name = match alias {
                    Some(alias) => {
                        rename(&mut rows.columns, alias)?;
                        alias.name.value.clone()
                    }
                    None => format!("subquery_{}", scope.kinds().len()),
                };
                (Box::new(Rc::new(rows)), name)
            }
            other => {
                return Err(unsupported(&format!("the table `{}`", shorten(&other.to_string())))
                    .suggestion("pass a file in single quotes: `FROM 'sales.csv'`"));
            }
        };
        let start = scope.add(name, source.columns())?;
        Ok(Joined::new(source, start))
    }

    /// Opens the file of a table name, and returns a short name for it.
    fn file(&self, table: &Ident) -> Result<(Box<dyn Source>, String), ToolFailure> {
        let name = &table.value;
        let path = self.files.get(name).cloned();
        if path.is_none() && table.quote_style.is_none() && !name.contains(['.', '/']) {
            let known: Vec<_> = self.files.keys().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() {
                String::new()
            } else {
                format!("; `tables` has {}", known.join(", "))
            };
            return Err(ToolFailure::new(format!("there is no table `{name}`"))
                .suggestion(format!(
                    "name a file in single quotes, such as `FROM '{name}.csv'`, or pass its path in \
                     `tables`{known}"
                ))
                .permanent());
        }
        let is_named = path.is_some();
        let path = crate::files::absolute(&path.unwrap_or_else(|| name.clone()));
        let source = source::open(&path)?;
        let file = path.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        Ok((source, if is_named { name.clone() } else { stem.to_owned() }))
    }

    /// Returns the keys of groups, or `None` if the query has no groups.
    fn groups(
        &self,
        select: &Select,
        items: &[Item<'_>],
        order: &[(&Expr, &OrderByOptions)],
        binder: &Binder<'_>,
    ) -> Result<Option<Groups>, ToolFailure> {
        let expressions = match &select.group_by {
            GroupByExpr::Expressions(expressions, modifiers) if modifiers.is_empty() => expressions,
            _ => return Err(unsupported("`GROUP BY ALL`, `ROLLUP` or `CUBE`")),
        };
        let keys = expressions.iter().map(|expr| match ordinal(expr, items.len())? {
            Some(index) => match items.get(index) {
                Some(item) => item.bind_row(binder),
                None => Err(unsupported("this `GROUP BY`")),
            },
            None => binder.bind_row(expr),
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let groups = Groups { keys, ..Groups::default() };
        let expressions = items.iter().filter_map(|it| it.expr);
        for expr in expressions.chain(order.iter().map(|(expr, _)| *expr)) {
            // Any other problem is reported when the expression is bound for good.
            let _ = binder.bind_row(expr);
        }
        let is_grouped =
            !groups.keys.is_empty() || select.having.is_some() || binder.has_aggregates.get();
        Ok(is_grouped.then_some(groups))
    }

    fn order_key(
        &self,
        expr: &Expr,
        items: &[Item<'_>],
        outputs: &[Expression],
        binder: &Binder<'_>,
    ) -> Result<Expression, ToolFailure> {
        let named = match expr {
            Expr::Identifier(name) => items.iter().position(|item| {
                item.explicit.is_some_and(|it| it.value.eq_ignore_ascii_case(&name.value))
            }),
            _ => None,
        };
        match named.or(ordinal(expr, outputs.len())?).and_then(|index| outputs.get(index)) {
            Some(output) => Ok(output.clone()),
            None => binder.bind(expr),
        }
    }
}

/// Makes a row of each group: its keys, then its aggregates.
fn grouped(
    groups: &Groups,
    budget: &Budget,
    rows: impl FnOnce(&mut dyn FnMut(&[Value]) -> Result<(), ToolFailure>) -> Result<(), ToolFailure>,
) -> Result<Vec<Row>, ToolFailure> {
    let aggregates = groups.aggregates.borrow();
    let new = || aggregates.iter().map(|_| State::new()).collect::<Vec<_>>();
    let mut states: BTreeMap<Row, Vec<State>> = BTreeMap::new();
    if groups.keys.is_empty() {
        states.insert(Vec::new(), new());
    }
    rows(&mut |row| {
        let key = groups.keys.iter().map(|key| key.value(row)).collect::<Result<Row, _>>()?;
        if !states.contains_key(&key) {
            budget.charge(size(&key) + size_of::<State>() * aggregates.len() + 64)?;
        }
        let group = states.entry(key).or_insert_with(new);
        for (aggregate, state) in aggregates.iter().zip(group) {
            state.add(aggregate, row, budget)?;
        }
        Ok(())
    })?;
    let rows = states.into_iter().map(|(mut row, states)| {
        let finished = aggregates.iter().zip(states);
        row.extend(finished.map(|(aggregate, state)| state.finish(aggregate.function)));
        row
    });
    Ok(rows.collect())
}

fn one_column(result: &Rows) -> ToolFailure {
    ToolFailure::new(format!(
        "a subquery in an expression has {} columns, expected one",
        result.columns.len()
    ))
    .permanent()
}
