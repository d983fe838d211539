//! Installs a Debian package with dpkg into an empty root, and lints it.

use std::fs;
use std::path::Path;

use anyhow::bail;

use super::clean::{CleanHome, check_leftovers, files_below};
use super::is_available;
use crate::packages::text;
use crate::run::root;

/// Tags of lintian that are expected.
const SUPPRESSED: [&str; 3] = [
    // The project has no address, and the package is not for Debian's own archive.
    "bogus-mail-host",
    "initial-upload-closes-no-bugs",
    // LICENSE names neither a holder nor a year.
    "copyright-without-copyright-notice",
];

/// Checks a Debian package.
pub(super) fn check(package: &Path) -> anyhow::Result<()> {
    if is_available("lintian")? {
        let home = CleanHome::new()?;
        let tags = SUPPRESSED.join(",");
        let arguments = [
            "--allow-root",
            "--fail-on",
            "error,warning",
            "--suppress-tags",
            &tags,
            text(package)?,
        ];
        home.command("lintian", &arguments).run(&root())?;
    }
    if !is_available("dpkg")? {
        return Ok(());
    }
    let home = CleanHome::new()?;
    let folder = home.folder().join("root");
    fs::create_dir_all(folder.join("var/lib/dpkg/info"))?;
    fs::create_dir_all(folder.join("var/lib/dpkg/updates"))?;
    fs::write(folder.join("var/lib/dpkg/status"), "")?;
    let before = installed(&folder)?;
    // The empty root has no C library; that of this machine serves the program.
    let dpkg = |arguments: &[&str]| -> anyhow::Result<()> {
        let target = format!("--root={}", text(&folder)?);
        let start = ["--force-not-root", "--force-depends", "--log=/dev/null", &target];
        let arguments: Vec<_> = start.iter().chain(arguments).copied().collect();
        home.command("dpkg", &arguments).quiet().run(&root())
    };
    dpkg(&["--install", text(package)?])?;
    for file in [
        "usr/share/bash-completion/completions/cofferdam",
        "usr/share/doc/cofferdam/copyright",
        "usr/share/man/man1/cofferdam.1.gz",
    ] {
        if !folder.join(file).is_file() {
            bail!("the package does not install {file}");
        }
    }
    home.check_program(&folder.join("usr/bin/cofferdam"))?;
    dpkg(&["--purge", "cofferdam"])?;
    check_leftovers(&before, &installed(&folder)?)
}

/// Returns the files in a root, except those of dpkg itself.
fn installed(root: &Path) -> anyhow::Result<std::collections::BTreeSet<std::path::PathBuf>> {
    let mut files = files_below(root)?;
    files.retain(|path| !path.starts_with("var/lib/dpkg"));
    Ok(files)
}
