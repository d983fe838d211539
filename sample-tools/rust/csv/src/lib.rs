//! Tools for CSV files in a mounted directory. A file is read once from front to back and never
//! held as a whole, so its size is bounded by the time of a call and not by its memory.

pub mod filter;
pub mod group_by;
mod names;
mod numbers;
mod paths;
pub mod schema;
mod table;

cofferdam_sdk::plugin!(schema::schema, filter::filter, group_by::group_by; manifest = "plugin.toml");
