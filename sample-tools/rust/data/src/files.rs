//! Finds the files of a query. If a file is missing, the failure lists what exists instead.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use cofferdam_sdk::ToolFailure;

/// Maximum number of names in a suggestion: enough to find the right one, short enough to read.
const NAMES_MAX: usize = 20;

/// Returns a path in a mount. A relative path is meant in the only mount.
pub(crate) fn absolute(path: &str) -> String {
    match mounts().as_slice() {
        [mount] if !path.starts_with('/') => format!("{}/{path}", mount.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

/// Opens a file and returns its length.
pub(crate) fn open(path: &str) -> Result<(File, u64), ToolFailure> {
    let opened = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    match opened {
        Ok((_, metadata)) if metadata.is_dir() => {
            Err(ToolFailure::new(format!("`{path}` is a directory, expected a file"))
                .suggestion(nearest(Path::new(path)))
                .permanent())
        }
        Ok((file, metadata)) => Ok((file, metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(ToolFailure::new(format!("there is no file `{path}`"))
                .suggestion(nearest(Path::new(path)))
                .permanent())
        }
        Err(error) => Err(ToolFailure::new(format!("`{path}` cannot be opened: {error}"))
            .suggestion(nearest(Path::new(path)))),
    }
}

/// Returns the sorted paths of a directory's files, or `None` if it is not a directory.
pub(crate) fn list(directory: &str) -> Option<Vec<String>> {
    let mut paths: Vec<String> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()))
        .map(|entry| entry.path().to_string_lossy().into_owned())
        .collect();
    paths.sort();
    Some(paths)
}

/// Lists the deepest existing directory on the way to `path`, or else the mounted directories.
fn nearest(path: &Path) -> String {
    let listed =
        path.ancestors().filter(|directory| !directory.as_os_str().is_empty()).find_map(listing);
    listed.unwrap_or_else(|| match mounts().as_slice() {
        [] => "ask for a directory to be mounted: there is none".to_owned(),
        mounts => {
            format!("pass a path in one of the mounted directories: `{}`", mounts.join("`, `"))
        }
    })
}

fn listing(directory: &Path) -> Option<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| {
            let slash = if entry.file_type().is_ok_and(|it| it.is_dir()) { "/" } else { "" };
            entry.file_name().to_string_lossy().into_owned() + slash
        })
        .collect();
    names.sort();
    let directory = directory.display();
    if names.is_empty() {
        return Some(format!("`{directory}` is empty"));
    }
    let more = if names.len() > NAMES_MAX { " and more" } else { "" };
    names.truncate(NAMES_MAX);
    Some(format!("`{directory}` holds `{}`{more}", names.join("`, `")))
}

#[cfg(target_arch = "wasm32")]
fn mounts() -> Vec<String> {
    wasip2::filesystem::preopens::get_directories().into_iter().map(|(_, path)| path).collect()
}

#[cfg(not(target_arch = "wasm32"))]
fn mounts() -> Vec<String> {
    Vec::new()
}

/// Path of a fixture.
#[cfg(test)]
pub(crate) fn fixture(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[cfg(test)]
mod tests {
    use super::{absolute, fixture, list, open};

    #[test]
    fn missing_files_are_answered_with_the_existing_ones() {
        let folder = fixture("");
        let failure = open(&fixture("sale.csv")).unwrap_err().to_string();
        assert!(failure.starts_with(&format!("there is no file `{folder}sale.csv`; `")));
        assert!(failure.contains("`sales.csv`"), "{failure}");
        assert!(open(&folder).unwrap_err().message().ends_with("is a directory, expected a file"));
        assert!(list(&folder).unwrap().contains(&fixture("sales.csv")));
        assert_eq!(list(&fixture("sales.csv")), None);
        assert_eq!(absolute("sales.csv"), "sales.csv");
    }
}
