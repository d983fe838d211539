//! Opens files. If a file is missing, the failure lists what exists instead.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use cofferdam_sdk::ToolFailure;

/// Maximum number of names in a suggestion: enough to find the right one, short enough to read.
const NAMES_MAX: usize = 20;

/// Opens a file and returns its length.
pub(crate) fn open(path: &str) -> Result<(File, u64), ToolFailure> {
    let opened = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    match opened {
        Ok((_, metadata)) if metadata.is_dir() => {
            Err(ToolFailure::new(format!("`{path}` is a directory, expected a PDF file"))
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

#[cfg(test)]
mod tests {
    use super::open;

    const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

    #[track_caller]
    fn check(path: &str, expected: &str) {
        let failure = open(path).unwrap_err().to_string().replace(HERE, "/mount");
        assert_eq!(failure, expected);
    }

    #[test]
    fn names_what_is_there() {
        check(
            &format!("{HERE}/data/reports.pdf"),
            "there is no file `/mount/data/reports.pdf`; `/mount/data` holds `columns.pdf`, \
             `cut.pdf`, `locked.pdf`, `owner.pdf`, `packed.pdf`, `report.pdf`, `unicode.pdf`",
        );
        check(
            &format!("{HERE}/x/y/report.pdf"),
            "there is no file `/mount/x/y/report.pdf`; `/mount` holds `data/`, `make.py`",
        );
        check(
            HERE,
            "`/mount` is a directory, expected a PDF file; `/mount` holds `data/`, `make.py`",
        );
        check(
            "report.pdf",
            "there is no file `report.pdf`; ask for a directory to be mounted: \
            there is none",
        );
        assert_eq!(open(&format!("{HERE}/data/cut.pdf")).unwrap().1, 2118);
    }
}
