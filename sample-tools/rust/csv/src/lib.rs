//! Tools for CSV files in a mounted directory. A file is read once from start to end and never held
//! in memory, so the time of a call limits its size, not the memory. Rows and results are limited.

pub mod filter;
pub mod group_by;
mod names;
mod numbers;
mod paths;
mod quotes;
mod room;
pub mod schema;
mod table;

cofferdam_sdk::plugin!(schema::schema, filter::filter, group_by::group_by; manifest = "plugin.toml");
