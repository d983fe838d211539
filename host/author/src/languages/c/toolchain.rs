//! Finds a compiler of C and C++ for WebAssembly: the first one that has all of its parts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::MissingTool;

/// Default directory of the WASI SDK of the Bytecode Alliance.
const WASI_SDK: &str = "/opt/wasi-sdk";
/// Suffixes of `clang` on the PATH: the tested version first, then newer before older ones. Plain
/// `clang` is last, because it often has no parts for WebAssembly.
const CLANGS: [&str; 7] = ["-19", "-22", "-21", "-20", "-18", "-17", ""];
/// Target name that all versions of clang and of its libraries know.
const TARGET: &str = "--target=wasm32-wasi";
/// Puts the stack first in memory, so that a stack overflow traps instead of overwriting data. Zig
/// always does this.
const STACK_FIRST: &[&str] = &["-Wl,--stack-first"];

/// Compiler with the arguments that it needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// Name of the compiler in messages.
    pub(super) name: String,
    /// Version that the compiler reports. Objects of another version are compiled again.
    pub(super) version: String,
    /// Arguments for linking only.
    pub(super) linking: &'static [&'static str],
    c: Vec<String>,
    cpp: Vec<String>,
}

impl Toolchain {
    /// Returns a command that compiles C or C++, or links.
    pub(super) fn command(&self, is_cpp: bool) -> Command {
        let mut words = if is_cpp { &self.cpp } else { &self.c }.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words);
        command
    }
}

/// Finds a toolchain.
pub(super) fn find(wasi_sdk: Option<&Path>, is_cpp: bool) -> Result<Toolchain, MissingTool> {
    let in_sdk = wasi_sdk.unwrap_or(Path::new(WASI_SDK)).join("bin/clang");
    let of_sdk = in_sdk.is_file().then(|| clang(&in_sdk.to_string_lossy(), is_cpp)).flatten();
    of_sdk
        .or_else(|| CLANGS.iter().find_map(|version| clang(&format!("clang{version}"), is_cpp)))
        .or_else(zig)
        .ok_or_else(|| missing(is_cpp))
}

/// Returns the toolchain of a clang that has a C library, compiler-rt and a linker, and for C++ the
/// C++ library.
fn clang(program: &str, is_cpp: bool) -> Option<Toolchain> {
    let version = output_of(program, &["--version"])?.lines().next()?.to_owned();
    let file =
        |name: &str| output_of(program, &[TARGET, name]).map(|path| PathBuf::from(path.trim()));
    let is_there = |name: &str| file(name).is_some_and(|path| path.is_absolute() && path.is_file());
    let library = if is_cpp { "-print-file-name=libc++.a" } else { "-print-file-name=libc.a" };
    if !is_there(library) || !is_there("-print-libgcc-file-name") {
        return None;
    }
    let mut c = vec![program.to_owned(), TARGET.to_owned()];
    if !is_there("-print-prog-name=wasm-ld") {
        c.push(format!("-B{}", linker_of_rust()?.display()));
    }
    let mut cpp = c.clone();
    // For C++, `clang-19` becomes `clang++-19`.
    let (folder, name) =
        program.rsplit_once('/').map_or(("", program), |(folder, name)| (folder, name));
    let name = name.replacen("clang", "clang++", 1);
    let plus = if folder.is_empty() { name } else { format!("{folder}/{name}") };
    match cpp.first_mut() {
        Some(first) if output_of(&plus, &["--version"]).is_some() => *first = plus,
        _ if is_cpp => return None,
        _ => {}
    }
    Some(Toolchain { name: format!("{program}, {version}"), version, linking: STACK_FIRST, c, cpp })
}

/// Returns the directory of the linker that comes with Rust, which has the name that clang looks
/// for.
fn linker_of_rust() -> Option<PathBuf> {
    let libraries = output_of("rustc", &["--print", "target-libdir"])?;
    let folder = Path::new(libraries.trim()).parent()?.join("bin/gcc-ld");
    folder.join("wasm-ld").is_file().then_some(folder)
}

/// Returns the toolchain of Zig, which contains all parts, also for C++. Zig instruments code
/// unless the sanitizers are disabled.
fn zig() -> Option<Toolchain> {
    let with = |program: &[&str]| {
        let (name, rest) = program.split_first()?;
        let version = output_of(name, &[rest, &["version"]].concat())?.trim().to_owned();
        let command = |mode: &str| {
            let options = [mode, "-target", "wasm32-wasi", "-fno-sanitize=all"];
            program.iter().chain(&options).map(|&word| word.to_owned()).collect()
        };
        let name = format!("{} {version}", program.join(" "));
        Some(Toolchain {
            name: name.clone(),
            version: name,
            linking: &[],
            c: command("cc"),
            cpp: command("c++"),
        })
    };
    with(&["zig"]).or_else(|| with(&["python3", "-m", "ziglang"]))
}

/// Returns the output of a program, or `None` if it fails.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn missing(is_cpp: bool) -> MissingTool {
    let (language, more) =
        if is_cpp { ("C++", " libc++-19-dev-wasm32 libc++abi-19-dev-wasm32") } else { ("C", "") };
    MissingTool {
        tool: format!("a compiler of {language} for WebAssembly, with its libraries"),
        looked_for: format!(
            "$WASI_SDK_PATH, {WASI_SDK}, clang-19 and other versions with `wasi-libc`, a linker \
             `wasm-ld`, zig, `python3 -m ziglang`"
        ),
        install: vec![
            format!("apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32{more}"),
            "python3 -m pip install ziglang==0.17.1".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_missing_toolchain_names_the_packages_that_bring_it() {
        assert_eq!(
            missing(true).to_string(),
            "a compiler of C++ for WebAssembly, with its libraries is missing (looked for $WASI_SDK_PATH, /opt/wasi-sdk, clang-19 and \
             other versions with `wasi-libc`, a linker `wasm-ld`, zig, `python3 -m ziglang`). \
             Install it with\n  apt-get install \
             clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 \
             libc++abi-19-dev-wasm32\nor\n  python3 -m \
             pip install ziglang==0.17.1"
        );
        assert!(!missing(false).to_string().contains("libc++"));
    }

    #[test]
    fn a_program_that_is_not_there_is_no_toolchain() {
        assert_eq!(clang("no-such-clang", false), None);
    }
}
