//! Calls against scripts, against a server in this test program, and against HTTP servers that
//! misbehave.

mod answers;
mod hostile;
mod http;
mod listing;
mod rounds;
mod rows;
mod served;
mod stdio;
