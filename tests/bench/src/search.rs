//! `search`: a search of 10 000 files with 200 MB of text in a directory store, against `rg` for
//! the same pattern.
//!
//! Ours lists the store, reads and searches it and returns all matching lines; the reference is a
//! process that does the same and writes them to a pipe. Both read files from the system's cache.
//! The goal is a ratio of at most 2.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cofferdam_files::{
    Budget, DirectoryOptions, DirectoryStore, FileStore, Overlay, SearchCaps, SearchQuery,
    StorePath, search,
};

use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "search";
const ROUNDS: usize = 15;
const DIRECTORIES: u32 = 100;
const FILES_PER_DIRECTORY: u64 = 100;
const FILE_BYTES: usize = 20_000;
/// Number of files per file with the rare word.
const FILES_PER_RARE: u64 = 500;

/// Searches: the name of the row, the pattern, whether it is case-sensitive, whether it runs
/// through the overlay of a call.
const PATTERNS: [(&str, &str, bool, bool); 5] = [
    ("search, rare literal", "Cofferdam needle", false, false),
    ("search, rare literal, case-sensitive", "Cofferdam needle", true, false),
    ("search, common regex", r"(return|result)\w* [a-z]+ing ", false, false),
    ("search, common regex, case-sensitive", r"fn [a-z_]+ .*\d{3}", true, false),
    ("search, rare literal, in a call", "Cofferdam needle", false, true),
];

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    if Command::new("rg").arg("--version").output().is_err() {
        super::note("search is not measured: ripgrep, which it is compared with, is not installed");
        return Ok(Vec::new());
    }
    let directory = tempfile::tempdir()?;
    write_files(directory.path(), effort)?;
    let store = DirectoryStore::open_ambient(directory.path(), DirectoryOptions::default())?;
    let store: Arc<dyn FileStore> = Arc::new(store);
    let mut ratios = Vec::new();
    for (name, pattern, is_case_sensitive, is_in_call) in PATTERNS {
        let (_, lines_expected) = time_reference(directory.path(), pattern, is_case_sensitive)?;
        let same = |(took, lines): (Duration, usize)| {
            ensure!(
                lines == lines_expected,
                "{lines} lines found and {lines_expected} by rg: {pattern}"
            );
            Ok(took)
        };
        let ours = async || {
            let searched = if is_in_call { in_call(&store) } else { Arc::clone(&store) };
            same(time_ours(&searched, pattern, is_case_sensitive).await?)
        };
        let reference =
            async || same(time_reference(directory.path(), pattern, is_case_sensitive)?);
        let ratio = Ratio::new(name).with_goal(Goal::AtMost(2.0));
        ratios.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(ratios)
}

fn in_call(store: &Arc<dyn FileStore>) -> Arc<dyn FileStore> {
    Arc::new(Overlay::new(Arc::clone(store), &Budget::new(64 << 20)))
}

/// Returns the time of a search, and the number of matching lines.
async fn time_ours(
    store: &Arc<dyn FileStore>,
    pattern: &str,
    is_case_sensitive: bool,
) -> anyhow::Result<(Duration, usize)> {
    let started = Instant::now();
    let caps = SearchCaps { matches_max: u64::MAX, ..SearchCaps::default() };
    let query = SearchQuery::new(pattern, is_case_sensitive)?.with_caps(caps);
    let results = search(store, &StorePath::ROOT, &query).await?;
    let lines = results.files.iter().map(|file| file.matching_lines.len()).sum();
    Ok((started.elapsed(), lines))
}

fn time_reference(
    directory: &Path,
    pattern: &str,
    is_case_sensitive: bool,
) -> anyhow::Result<(Duration, usize)> {
    let started = Instant::now();
    let case = if is_case_sensitive { "--case-sensitive" } else { "--ignore-case" };
    let threads = std::thread::available_parallelism()?.to_string();
    let output = Command::new("rg")
        .args(["--no-config", "--no-ignore", "--hidden", "--line-number", "--no-heading", case])
        .args(["--threads", &threads, "--regexp", pattern, "--", "."])
        .current_dir(directory)
        .stderr(Stdio::inherit())
        .output()
        .context("ripgrep is needed as the reference: cannot run `rg`")?;
    let took = started.elapsed();
    Ok((took, output.stdout.iter().filter(|byte| **byte == b'\n').count()))
}

/// Writes text that resembles sources and notes, always the same.
fn write_files(root: &Path, effort: Effort) -> anyhow::Result<()> {
    let mut random = Random(7);
    let words = words(&mut random);
    for directory in 0..u64::from(effort.times(DIRECTORIES)) {
        let directory_path =
            root.join(format!("part{}", directory / 10)).join(format!("module{directory}"));
        fs::create_dir_all(&directory_path)?;
        for file in 0..FILES_PER_DIRECTORY {
            let mut text = text(&mut random, &words);
            if (directory * FILES_PER_DIRECTORY + file).is_multiple_of(FILES_PER_RARE) {
                text.push_str("the cofferdam NEEDLE is here, and\nthe Cofferdam needle there\n");
            }
            fs::write(directory_path.join(format!("file{file}.rs")), text)?;
        }
    }
    Ok(())
}

fn words(random: &mut Random) -> Vec<String> {
    let known = [
        "the", "fn", "let", "return", "result", "a", "of", "and", "=", "->", "match", "if", "self",
    ];
    let syllables =
        ["al", "be", "co", "de", "er", "fa", "in", "ka", "lo", "me", "no", "ra", "st", "to", "u"];
    let made = (0..4000).map(|_| {
        let mut word = String::new();
        for _ in 0..=random.below(3) {
            word.push_str(random.pick(&syllables));
        }
        word + random.pick(&["", "", "", "ing", "ed", "_id", "()"])
    });
    known.iter().map(ToString::to_string).chain(made.collect::<Vec<_>>()).collect()
}

fn text(random: &mut Random, words: &[String]) -> String {
    let bytes = FILE_BYTES / 2 + random.below(FILE_BYTES);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(random.pick(&["", "", "    ", "        "]));
        for _ in 0..random.below(16) {
            // The first words are the frequent ones.
            let below = random.below(words.len()) + 1;
            let word = words.get(random.below(below)).map_or("", String::as_str);
            text.push_str(word);
            text.push(' ');
        }
        if random.below(12) == 0 {
            let _infallible = write!(text, "{} ", random.below(100_000));
        }
        if random.below(200) == 0 {
            text.push_str("née — Straße");
        }
        text.push('\n');
    }
    text
}

/// Generator of the same numbers everywhere (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap_or_default() % end.max(1)
    }

    fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices.get(self.below(choices.len())).copied().unwrap_or_default()
    }
}
