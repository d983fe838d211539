//! Turns expressions of SQL into expressions over rows.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use cofferdam_sdk::ToolFailure;
use sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DataType, DuplicateTreatment, Expr, Function as Call,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, InTarget, TrimWhereField,
    UnaryOperator, Value as Literal,
};

use crate::aggregate::{Aggregate, AggregateFunction};
use crate::expression::{Arithmetic, Comparison, Expression};
use crate::functions::Function;
use crate::names::{self, shorten};
use crate::scope::Scope;
use crate::select::Context;
use crate::value::{Kind, Value, parse_number};

/// Maximum depth of an expression.
const DEPTH_MAX: usize = 64;

/// Binds expressions to the columns of a scope or, in a query with groups, to the keys and
/// aggregates of a group.
pub(crate) struct Binder<'b> {
    pub(crate) scope: &'b Scope,
    pub(crate) context: &'b Context<'b>,
    /// Expressions of the select list by their names, in lower case, for `GROUP BY` and `HAVING`.
    pub(crate) aliases: BTreeMap<String, &'b Expr>,
    pub(crate) groups: Option<Groups>,
    /// True once an aggregate was found outside groups.
    pub(crate) has_aggregates: Cell<bool>,
    depth: Cell<usize>,
}

/// A row of a query with groups: the keys, then the aggregates.
#[derive(Default)]
pub(crate) struct Groups {
    pub(crate) keys: Vec<Expression>,
    pub(crate) aggregates: RefCell<Vec<Aggregate>>,
}

type Bound = Result<Expression, ToolFailure>;

impl<'b> Binder<'b> {
    pub(crate) fn new(scope: &'b Scope, context: &'b Context<'b>) -> Self {
        Self {
            scope,
            context,
            aliases: BTreeMap::new(),
            groups: None,
            has_aggregates: Cell::new(false),
            depth: Cell::new(0),
        }
    }

    pub(crate) fn bind(&self, expr: &Expr) -> Bound {
        self.bind_in(expr, self.groups.as_ref())
    }

    /// Binds an expression that is computed for each row before groups are made.
    pub(crate) fn bind_row(&self, expr: &Expr) -> Bound {
        self.bind_in(expr, None)
    }

    fn bind_in(&self, expr: &Expr, groups: Option<&Groups>) -> Bound {
        if self.depth.get() >= DEPTH_MAX {
            return Err(ToolFailure::new(format!(
                "an expression is nested more than {DEPTH_MAX} levels deep"
            ))
            .suggestion("use `IN (…)` instead of many `OR`")
            .permanent());
        }
        self.depth.set(self.depth.get() + 1);
        let bound = self.bind_node(expr, groups);
        self.depth.set(self.depth.get() - 1);
        bound
    }

    fn bind_node(&self, expr: &Expr, groups: Option<&Groups>) -> Bound {
        if let Some(groups) = groups
            && let Some(index) = self.key(expr, groups)
        {
            return Ok(Expression::Column(index));
        }
        let bind = |expr: &Expr| self.bind_in(expr, groups);
        let boxed = |expr: &Expr| self.bind_in(expr, groups).map(Box::new);
        Ok(match expr {
            Expr::Identifier(column) => return self.column(None, column, groups),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column] => return self.column(Some(&table.value), column, groups),
                _ => return Err(unsupported(&format!("the name `{expr}`"))),
            },
            Expr::Nested(inner) => bind(inner)?,
            Expr::Value(literal) => Expression::Literal(value(&literal.value)?),
            Expr::TypedString(typed) => Expression::Literal(value(&typed.value.value)?),
            Expr::IsNull(operand) => Expression::IsNull(boxed(operand)?),
            Expr::IsNotNull(operand) => not(Expression::IsNull(boxed(operand)?)),
            Expr::IsTrue(operand) => is(bind(operand)?, true),
            Expr::IsNotTrue(operand) => not(is(bind(operand)?, true)),
            Expr::IsFalse(operand) => is(bind(operand)?, false),
            Expr::IsNotFalse(operand) => not(is(bind(operand)?, false)),
            Expr::IsDistinctFrom(left, right) => {
                not(Expression::IsSame(boxed(left)?, boxed(right)?))
            }
            Expr::IsNotDistinctFrom(left, right) => Expression::IsSame(boxed(left)?, boxed(right)?),
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Plus => bind(expr)?,
                UnaryOperator::Minus => Expression::Negate(boxed(expr)?),
                UnaryOperator::Not => not(bind(expr)?),
                _ => return Err(unsupported(&format!("the operator `{op}`"))),
            },
            Expr::BinaryOp { left, op, right } => {
                return self.binary(op, bind(left)?, bind(right)?, groups);
            }
            Expr::Between { expr, negated, low, high } => {
                let at_least =
                    self.compare(Comparison::AtLeast, bind(expr)?, bind(low)?, groups)?;
                let at_most = self.compare(Comparison::AtMost, bind(expr)?, bind(high)?, groups)?;
                negate(*negated, Expression::And(Box::new(at_least), Box::new(at_most)))
            }
            Expr::In { expr, target, negated, .. } => {
                let value = boxed(expr)?;
                let found = match target {
                    InTarget::List(items) => {
                        let list = items.iter().map(|item| {
                            let (_, item) = self.coerce((*value).clone(), bind(item)?, groups)?;
                            Ok(item)
                        });
                        Expression::In { list: list.collect::<Result<_, ToolFailure>>()?, value }
                    }
                    InTarget::Subquery(query) => {
                        Expression::InSet { value, set: self.context.set(query)? }
                    }
                    InTarget::Unnest(_) | InTarget::Table { .. } => {
                        return Err(unsupported("`IN` with anything but a list or a subquery"));
                    }
                };
                negate(*negated, found)
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                let (value, pattern) = (boxed(expr)?, boxed(pattern)?);
                negate(*negated, Expression::Like { value, pattern, ignores_case: false })
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                let (value, pattern) = (boxed(expr)?, boxed(pattern)?);
                negate(*negated, Expression::Like { value, pattern, ignores_case: true })
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                let operand = operand.as_deref().map(bind).transpose()?;
                let arms = conditions.iter().map(|arm| {
                    let condition = bind(&arm.condition)?;
                    let condition = match &operand {
                        Some(operand) => {
                            self.compare(Comparison::Equal, operand.clone(), condition, groups)?
                        }
                        None => condition,
                    };
                    Ok((condition, bind(&arm.result)?))
                });
                let otherwise = else_result.as_deref().map(bind).transpose()?;
                Expression::Case {
                    arms: arms.collect::<Result<_, ToolFailure>>()?,
                    otherwise: Box::new(otherwise.unwrap_or(Expression::Literal(Value::Null))),
                }
            }
            Expr::Cast { kind, expr, data_type, .. } => {
                use sqlparser::ast::CastKind::{SafeCast, TryCast};
                let is_try = matches!(kind, TryCast | SafeCast);
                match data_type {
                    // The date of a text with a time.
                    DataType::Date => Expression::Call(
                        Function::DateTrunc,
                        vec![Expression::Literal(Value::text("day")), bind(expr)?],
                    ),
                    _ => {
                        Expression::Cast { value: boxed(expr)?, kind: kind_of(data_type)?, is_try }
                    }
                }
            }
            Expr::Extract { field, expr, .. } => {
                let name = field.to_string().to_lowercase();
                let name = if matches!(name.as_str(), "isodow") { "weekday" } else { &name };
                let function = match name {
                    "year" | "quarter" | "month" | "day" | "hour" | "weekday" => {
                        Function::find(name)
                    }
                    _ => None,
                };
                let function =
                    function.ok_or_else(|| unsupported(&format!("`EXTRACT({field} …)`")))?;
                Expression::Call(function, vec![bind(expr)?])
            }
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(_) } => {
                Expression::Call(Function::Ceiling, vec![bind(expr)?])
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(_) } => {
                Expression::Call(Function::Floor, vec![bind(expr)?])
            }
            Expr::Position { expr, r#in } => {
                Expression::Call(Function::Position, vec![bind(r#in)?, bind(expr)?])
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let start = substring_from.as_deref().map(bind).transpose()?;
                let mut arguments =
                    vec![bind(expr)?, start.unwrap_or(Expression::Literal(Value::Integer(1)))];
                arguments.extend(substring_for.as_deref().map(bind).transpose()?);
                Expression::Call(Function::Substring, arguments)
            }
            Expr::Trim { trim_where, trim_what: None, expr, trim_characters: None } => {
                let function = match trim_where {
                    None | Some(TrimWhereField::Both) => Function::Trim,
                    Some(TrimWhereField::Leading) => Function::LeftTrim,
                    Some(TrimWhereField::Trailing) => Function::RightTrim,
                };
                Expression::Call(function, vec![bind(expr)?])
            }
            Expr::Function(call) => return self.function(call, groups),
            Expr::Subquery(query) => Expression::Literal(self.context.scalar(query)?),
            Expr::Exists { subquery, negated } => {
                let exists = self.context.exists(subquery)?;
                Expression::Literal(Value::Boolean(exists != *negated))
            }
            other => return Err(unsupported(&format!("`{}`", shorten(&other.to_string())))),
        })
    }

    /// Returns the index of a group's key that is equal to an expression.
    fn key(&self, expr: &Expr, groups: &Groups) -> Option<usize> {
        if groups.keys.is_empty() || matches!(expr, Expr::Value(_) | Expr::Subquery(_)) {
            return None;
        }
        let bound = self.bind_in(expr, None).ok()?;
        groups.keys.iter().position(|key| *key == bound)
    }

    fn column(&self, table: Option<&str>, column: &Ident, groups: Option<&Groups>) -> Bound {
        let found = self.scope.find(table, column);
        let alias = || self.aliases.get(&column.value.to_lowercase());
        match (found, groups) {
            (Ok(index), None) => Ok(Expression::Column(index)),
            (Ok(_), Some(_)) => Err(ToolFailure::new(format!(
                "the column `{column}` is neither in `GROUP BY` nor in an aggregate"
            ))
            .suggestion(format!("group by it, or use an aggregate such as `max({column})`"))
            .permanent()),
            (Err(failure), groups) => match (table, alias()) {
                // An alias of itself would never end.
                (None, Some(expr)) if !matches!(expr, Expr::Identifier(_)) => {
                    self.bind_in(expr, groups)
                }
                _ => Err(failure),
            },
        }
    }

    fn binary(
        &self,
        op: &BinaryOperator,
        left: Expression,
        right: Expression,
        groups: Option<&Groups>,
    ) -> Bound {
        let arithmetic = |operator, left, right| {
            Ok(Expression::Arithmetic(operator, Box::new(left), Box::new(right)))
        };
        match op {
            BinaryOperator::And => Ok(Expression::And(Box::new(left), Box::new(right))),
            BinaryOperator::Or => Ok(Expression::Or(Box::new(left), Box::new(right))),
            BinaryOperator::Eq => self.compare(Comparison::Equal, left, right, groups),
            BinaryOperator::NotEq => self.compare(Comparison::NotEqual, left, right, groups),
            BinaryOperator::Lt => self.compare(Comparison::Less, left, right, groups),
            BinaryOperator::LtEq => self.compare(Comparison::AtMost, left, right, groups),
            BinaryOperator::Gt => self.compare(Comparison::Greater, left, right, groups),
            BinaryOperator::GtEq => self.compare(Comparison::AtLeast, left, right, groups),
            BinaryOperator::Plus => arithmetic(Arithmetic::Add, left, right),
            BinaryOperator::Minus => arithmetic(Arithmetic::Subtract, left, right),
            BinaryOperator::Multiply => arithmetic(Arithmetic::Multiply, left, right),
            BinaryOperator::Divide => arithmetic(Arithmetic::Divide, left, right),
            BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide => {
                arithmetic(Arithmetic::DivideInteger, left, right)
            }
            BinaryOperator::Modulo => arithmetic(Arithmetic::Remainder, left, right),
            BinaryOperator::StringConcat => {
                Ok(Expression::Concatenate(Box::new(left), Box::new(right)))
            }
            BinaryOperator::Arrow | BinaryOperator::LongArrow => {
                Ok(Expression::Call(Function::JsonExtract, vec![left, right]))
            }
            _ => Err(unsupported(&format!("the operator `{op}`"))),
        }
    }

    fn compare(
        &self,
        comparison: Comparison,
        left: Expression,
        right: Expression,
        groups: Option<&Groups>,
    ) -> Bound {
        let (left, right) = self.coerce(left, right, groups)?;
        Ok(Expression::Compare(comparison, Box::new(left), Box::new(right)))
    }

    /// Converts a literal to the type of the column that it is compared with.
    fn coerce(
        &self,
        left: Expression,
        right: Expression,
        groups: Option<&Groups>,
    ) -> Result<(Expression, Expression), ToolFailure> {
        match (left, right) {
            (Expression::Column(index), Expression::Literal(literal)) => {
                let literal = self.convert(index, literal, groups)?;
                Ok((Expression::Column(index), Expression::Literal(literal)))
            }
            (Expression::Literal(literal), Expression::Column(index)) => {
                let literal = self.convert(index, literal, groups)?;
                Ok((Expression::Literal(literal), Expression::Column(index)))
            }
            other => Ok(other),
        }
    }

    fn convert(
        &self,
        index: usize,
        literal: Value,
        groups: Option<&Groups>,
    ) -> Result<Value, ToolFailure> {
        let index = match groups.map(|groups| groups.keys.get(index)) {
            None => index,
            Some(Some(Expression::Column(index))) => *index,
            // The type of an aggregate or of a computed key is not known.
            Some(_) => return Ok(literal),
        };
        let kind = self.scope.kinds().get(index).copied().unwrap_or(Kind::Empty);
        let mismatch = |is: &str| {
            ToolFailure::new(format!(
                "a column of {is} is compared with `{}`",
                shorten(&literal.to_text())
            ))
            .permanent()
        };
        match (kind, &literal) {
            (kind, Value::Text(text)) if kind.is_numeric() => {
                parse_number(text).ok_or_else(|| mismatch("numbers").suggestion("pass a number"))
            }
            (Kind::Boolean, Value::Text(_) | Value::Integer(_)) => {
                match crate::expression::cast(&literal, Kind::Boolean) {
                    Some(boolean) => Ok(boolean),
                    None => Err(mismatch("booleans").suggestion("pass `true` or `false`")),
                }
            }
            (Kind::Text, Value::Integer(_) | Value::Number(_)) => Err(mismatch("text").suggestion(
                "put the value in single quotes, or compare `TRY_CAST(… AS DOUBLE)` with it",
            )),
            _ => Ok(literal),
        }
    }

    fn function(&self, call: &Call, groups: Option<&Groups>) -> Bound {
        let name = call.name.to_string().trim_matches('"').to_lowercase();
        if call.over.is_some() {
            return Err(unsupported("a window function (`OVER`)")
                .suggestion("use `GROUP BY` in a subquery and join it"));
        }
        if !call.within_group.is_empty()
            || call.null_treatment.is_some()
            || !matches!(call.parameters, FunctionArguments::None)
        {
            return Err(unsupported(&format!("this form of `{name}`")));
        }
        let (arguments, is_distinct) = match &call.args {
            FunctionArguments::None => (Vec::new(), false),
            FunctionArguments::Subquery(_) => {
                return Err(unsupported("a subquery as an argument"));
            }
            FunctionArguments::List(list) if !list.clauses.is_empty() => {
                return Err(unsupported("`ORDER BY` and other clauses in a function"));
            }
            FunctionArguments::List(list) => {
                let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
                (list.args.iter().collect(), is_distinct)
            }
        };
        if let Some(function) = AggregateFunction::find(&name) {
            return self.aggregate(function, &arguments, is_distinct, call, groups);
        }
        let Some(function) = Function::find(&name) else {
            let known: Vec<_> = AggregateFunction::NAMES
                .iter()
                .chain(Function::NAMES)
                .map(|name| (*name).to_owned())
                .collect();
            return Err(ToolFailure::new(format!("there is no function `{name}`"))
                .suggestion(names::suggestion("functions", &name, &known))
                .permanent());
        };
        if is_distinct || call.filter.is_some() {
            return Err(unsupported(&format!("`DISTINCT` or `FILTER` in `{name}`")));
        }
        let arguments = arguments.into_iter().map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.bind_in(expr, groups),
            _ => Err(unsupported(&format!("the argument `{argument}` of `{name}`"))),
        });
        checked(&name, function, arguments.collect::<Result<_, _>>()?)
    }

    fn aggregate(
        &self,
        function: AggregateFunction,
        arguments: &[&FunctionArg],
        is_distinct: bool,
        call: &Call,
        groups: Option<&Groups>,
    ) -> Bound {
        let Some(groups) = groups else {
            self.has_aggregates.set(true);
            return Err(ToolFailure::new(format!("the aggregate `{call}` is not possible here"))
                .suggestion("use aggregates in `SELECT`, `HAVING` and `ORDER BY`, not nested")
                .permanent());
        };
        let mut separator = ",".to_owned();
        let argument = match arguments {
            [] | [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]
                if function == AggregateFunction::Count =>
            {
                None
            }
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)), rest @ ..] => {
                match (function, rest) {
                    (_, []) => {}
                    (
                        AggregateFunction::StringAggregate,
                        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(literal)))],
                    ) => separator = value(&literal.value)?.to_text().to_string(),
                    _ => return Err(unsupported(&format!("the arguments of `{call}`"))),
                }
                Some(self.bind_in(expr, None)?)
            }
            _ => return Err(unsupported(&format!("the arguments of `{call}`"))),
        };
        let filter = call.filter.as_deref().map(|expr| self.bind_in(expr, None)).transpose()?;
        let aggregate = Aggregate { function, argument, separator, is_distinct, filter };
        let mut aggregates = groups.aggregates.borrow_mut();
        let index = aggregates.iter().position(|it| *it == aggregate).unwrap_or_else(|| {
            aggregates.push(aggregate);
            aggregates.len() - 1
        });
        Ok(Expression::Column(groups.keys.len() + index))
    }
}

/// Returns the call of a function if it has the right number of arguments.
fn checked(name: &str, function: Function, arguments: Vec<Expression>) -> Bound {
    let (minimum, maximum) = function.arity();
    if (minimum..=maximum).contains(&arguments.len()) {
        return Ok(Expression::Call(function, arguments));
    }
    Err(ToolFailure::new(format!(
        "`{name}` has {} arguments, expected {minimum}{}",
        arguments.len(),
        if maximum > minimum { format!(" to {maximum}") } else { String::new() }
    ))
    .suggestion(format!("call it as `{name}({})`", function.arguments()))
    .permanent())
}

fn not(operand: Expression) -> Expression {
    Expression::Not(Box::new(operand))
}

fn negate(is_negated: bool, operand: Expression) -> Expression {
    if is_negated { not(operand) } else { operand }
}

fn is(operand: Expression, truth: bool) -> Expression {
    let truth = Expression::Literal(Value::Boolean(truth));
    Expression::IsSame(Box::new(operand), Box::new(truth))
}

/// Returns the value of a literal.
pub(crate) fn value(literal: &Literal) -> Result<Value, ToolFailure> {
    match literal {
        Literal::Null => Ok(Value::Null),
        Literal::Boolean(boolean) => Ok(Value::Boolean(*boolean)),
        Literal::Number(digits, _) => {
            parse_number(digits).ok_or_else(|| unsupported(&format!("the number `{digits}`")))
        }
        Literal::SingleQuotedString(text) | Literal::EscapedStringLiteral(text) => {
            Ok(Value::text(text.as_str()))
        }
        Literal::Placeholder(_) => Err(unsupported("a parameter in the text")
            .suggestion("write the value into the text, with `''` for each single quote")),
        other => Err(unsupported(&format!("the literal `{}`", shorten(&other.to_string())))),
    }
}

fn kind_of(data_type: &DataType) -> Result<Kind, ToolFailure> {
    let name = data_type.to_string().to_uppercase();
    match name.split(['(', ' ']).next().unwrap_or_default() {
        "INT" | "INTEGER" | "BIGINT" | "SMALLINT" | "TINYINT" | "SIGNED" | "UNSIGNED" | "INT8"
        | "INT64" | "INT4" => Ok(Kind::Integer),
        "DOUBLE" | "FLOAT" | "REAL" | "DECIMAL" | "NUMERIC" | "NUMBER" | "FLOAT8" | "FLOAT64" => {
            Ok(Kind::Number)
        }
        "TEXT" | "VARCHAR" | "CHAR" | "STRING" | "CHARACTER" | "TIMESTAMP" | "DATETIME" => {
            Ok(Kind::Text)
        }
        "BOOLEAN" | "BOOL" => Ok(Kind::Boolean),
        _ => Err(unsupported(&format!("the type `{data_type}`"))
            .suggestion("use BIGINT, DOUBLE, VARCHAR, BOOLEAN or DATE")),
    }
}

pub(crate) fn unsupported(what: &str) -> ToolFailure {
    ToolFailure::new(format!("{what} is not supported")).permanent()
}
