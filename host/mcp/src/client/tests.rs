//! Calls against scripts, against a server that is this test program itself, and against HTTP
//! servers that misbehave.

mod hostile;
mod http;
mod listing;
mod rounds;
mod rows;
mod served;
mod stdio;
