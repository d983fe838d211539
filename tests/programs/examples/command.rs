//! Program for WASI that knows nothing of Cofferdam: what a command plugin is made of. Its first
//! argument says what it does.

use std::io::{Read, Write};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mode, rest) =
        arguments.split_first().map_or(("input", &[][..]), |(mode, rest)| (mode.as_str(), rest));
    match mode {
        // Prints its arguments, one per line.
        "arguments" => rest.iter().for_each(|argument| println!("{argument}")),
        // Prints its standard input.
        "input" => {
            let mut input = Vec::new();
            std::io::stdin().read_to_end(&mut input).unwrap();
            std::io::stdout().write_all(&input).unwrap();
        }
        // Prints a file.
        "file" => print!("{}", std::fs::read_to_string(&rest[0]).unwrap()),
        // Prints the value of an environment variable to standard error, and fails.
        "leak" => {
            eprintln!("the token is {}", std::env::var(&rest[0]).unwrap());
            std::process::exit(255);
        }
        "garbage" => print!("{{\"a\":"),
        "bytes" => std::io::stdout().write_all(&[0xff, 0xfe, 0]).unwrap(),
        "flood" => loop {
            println!("{}", "x".repeat(100_000));
        },
        // Never reads its standard input.
        "deaf" => println!("done"),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "panic" => panic!("a secret of the program"),
        other => {
            eprintln!("usage: command MODE; `{other}` is not a mode");
            std::process::exit(2);
        }
    }
}
