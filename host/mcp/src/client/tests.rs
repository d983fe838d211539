//! The rules for calls, played against scripts.

mod rows;
