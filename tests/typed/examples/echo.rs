//! Every WIT type as parameter and result, and every outcome.

use std::cell::Cell;

wit_bindgen::generate!({ path: "wit/echo.wit" });

use exports::tests::echo::ends::{Detailed, Guest as Ends, Problem, Reason};
use exports::tests::echo::types::*;

struct Echo;

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

fn count() -> u32 {
    CALLS.with(|calls| {
        calls.set(calls.get() + 1);
        calls.get()
    })
}

macro_rules! echo {
    ($($name:ident($ty:ty)),* $(,)?) => {
        $(fn $name(value: $ty) -> $ty { value })*
    };
}

impl exports::tests::echo::types::Guest for Echo {
    echo! {
        bools(bool),
        chars(char),
        texts(String),
        bytes(Vec<u8>),
        people(Person),
        figures(Figure),
        weekdays(Weekday),
        colors(Color),
        permission_sets(Permissions),
        options(Option<u32>),
        nested_options(Option<Option<u32>>),
        results((Result<u32, String>,)),
        all(Everything),
    }

    fn signed(a: i8, b: i16, c: i32, d: i64) -> (i8, i16, i32, i64) {
        (a, b, c, d)
    }

    fn unsigned(a: u8, b: u16, c: u32, d: u64) -> (u8, u16, u32, u64) {
        (a, b, c, d)
    }

    fn floats(single: f32, double: f64) -> (f32, f64) {
        (single, double)
    }
}

impl Ends for Echo {
    fn nothing() {}

    fn text(text: String, fail: bool) -> Result<String, String> {
        if fail { Err(text) } else { Ok(text) }
    }

    fn record_error(suggestion: Option<String>) -> Result<u32, Problem> {
        Err(Problem { message: "no such order".into(), suggestion, transient: Some(true) })
    }

    fn detailed_error() -> Result<u32, Detailed> {
        Err(Detailed { message: "refused".into(), code: 7 })
    }

    fn variant_error() -> Result<(), Reason> {
        Err(Reason::NotFound("x".into()))
    }

    fn bare_error(fail: bool) -> Result<(), ()> {
        if fail { Err(()) } else { Ok(()) }
    }

    fn not_finite(divisor: f64) -> f64 {
        1.0 / divisor
    }

    fn blob(length: u32) -> Vec<u8> {
        vec![255; length as usize]
    }

    fn long_text(length: u32) -> String {
        "x".repeat(length as usize)
    }

    fn panics() -> String {
        panic!("on purpose")
    }

    fn count() -> u32 {
        count()
    }

    fn spins() {
        loop {
            std::hint::black_box(());
        }
    }
}

impl exports::clock::Guest for Echo {
    fn count() -> u32 {
        count() + 1000
    }
}

impl Guest for Echo {
    fn greet_all(names: Vec<String>) -> String {
        format!("Hello, {}!", names.join(", "))
    }
}

export!(Echo);
