//! Many different plugins: copies of a few built guests, each with an additional section that is
//! never read.

use std::path::PathBuf;

use anyhow::Context as _;
use cofferdam_tests::{guest, root};

const GUESTS: [&str; 2] = ["served", "csv"];

/// Returns the files of the first `count` copies, and writes missing ones. `only` names a single
/// guest to copy.
pub(crate) fn copies(count: usize, only: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let folder = root().join("target/bench").join(only.unwrap_or("mixed"));
    std::fs::create_dir_all(&folder).context("cannot create target/bench")?;
    let guests: Vec<_> = only.map_or_else(|| GUESTS.to_vec(), |only| vec![only]);
    let originals = guests.into_iter().map(|name| Ok(std::fs::read(guest(name))?));
    let originals = originals.collect::<anyhow::Result<Vec<_>>>()?;
    (0..count)
        .zip(originals.iter().cycle())
        .map(|(number, original)| {
            let (path, wanted) =
                (folder.join(format!("p{number}.wasm")), with_section(original, number)?);
            if std::fs::read(&path).ok().as_ref() != Some(&wanted) {
                std::fs::write(&path, wanted)?;
            }
            Ok(path)
        })
        .collect()
}

/// Returns the component with an additional custom section named `copy`.
fn with_section(component: &[u8], number: usize) -> anyhow::Result<Vec<u8>> {
    const NAME: &[u8] = b"copy";
    let content = u32::try_from(number)?.to_le_bytes();
    // Section 0, and lengths that fit into one byte of LEB128.
    let mut section =
        vec![0, u8::try_from(1 + NAME.len() + content.len())?, u8::try_from(NAME.len())?];
    section.extend_from_slice(NAME);
    section.extend_from_slice(&content);
    Ok([component, &section].concat())
}
