//! The conformance plugin in Rust. See `../README.md` for its tools.

mod host;
mod requests;
mod results;
mod values;

use host::{local_file, log, missing, progress, relay, secret, store};
use requests::http;
use results::{annotated, blob, crash, fail, nothing, several, word};
use values::{big_numbers, defaults, echo, nested, nullables, unicode};

cofferdam_sdk::plugin!(
    echo,
    defaults,
    nullables,
    nested,
    fail,
    crash,
    unicode,
    big_numbers,
    nothing,
    word,
    blob,
    several,
    store,
    missing,
    local_file,
    progress,
    log,
    relay,
    secret,
    http,
    annotated,
);
