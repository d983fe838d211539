//! SQL over CSV, JSON and Parquet files of a mounted directory.
//!
//! The first table of a query is read row by row and never held in memory; groups, sorted rows and
//! joined tables are, within a budget.

mod aggregate;
mod binder;
mod budget;
mod clauses;
mod collector;
mod dates;
pub mod describe;
mod expression;
mod files;
mod functions;
mod join;
mod names;
pub mod query;
mod scope;
mod select;
mod source;
mod value;

cofferdam_sdk::plugin!(describe::describe, query::query; manifest = "plugin.toml");
