//! Workflows as a program builds and runs them.
