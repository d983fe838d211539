//! Packs the SDKs, the templates of new projects, the plugin interface and the
//! parts of WASI that SDKs use into the crate, so that
//! an author needs only the binary.
//!
//! SDKs and interface lie outside of the crate in the repository, and in the folder `packed` of a
//! crate that `cargo xtask dist --crates` has packed. A folder that is missing is an error: without
//! it, the program could not make projects, and no test of a user would show that.
//!
//! Writes one table of `(path, bytes)` per directory tree. Paths use `/` and are sorted, so that
//! the binary does not depend on the file system.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names in a checkout that are not packed: build results, and tests that only this repository
/// runs.
const LEFT_OUT: [&str; 13] = [
    "tests",
    "target",
    "node_modules",
    "__pycache__",
    "dist",
    "package-lock.json",
    ".cofferdam",
    ".gitignore",
    ".npmrc",
    ".pytest_cache",
    ".venv",
    ".zig-cache",
    "zig-out",
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let packed = here.join("packed");
    let root = if packed.is_dir() { packed } else { here.join("../..") };
    let mut code = String::new();
    table(&mut code, "TEMPLATES", &here.join("templates"))?;
    table(&mut code, "WIT", &root.join("wit"))?;
    table(&mut code, "WASI", &here.join("wasi"))?;
    for language in ["rust", "python", "javascript", "go", "c", "zig"] {
        table(
            &mut code,
            &format!("SDK_{}", language.to_uppercase()),
            &root.join("guest-sdk").join(language),
        )?;
    }
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("packed.rs"), code)?;
    Ok(())
}

fn table(code: &mut String, name: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    if folder.is_dir() {
        collect(folder, &mut String::new(), &mut files)?;
    }
    if files.is_empty() {
        let folder = folder.display();
        return Err(format!(
            "expected files in {folder}, found none; pack this crate with `cargo xtask dist \
             --crates`"
        )
        .into());
    }
    files.sort();
    writeln!(code, "pub(crate) static {name}: &[(&str, &[u8])] = &[")?;
    for (name, path) in files {
        let path = fs::canonicalize(path)?;
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    code.push_str("];\n");
    Ok(())
}

fn collect(
    folder: &Path,
    prefix: &mut String,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name =
            entry.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let length = prefix.len();
        prefix.push_str(&name);
        if entry.file_type()?.is_dir() {
            prefix.push('/');
            collect(&entry.path(), prefix, files)?;
        } else {
            files.push((prefix.clone(), entry.path()));
        }
        prefix.truncate(length);
    }
    Ok(())
}
