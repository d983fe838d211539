//! `cofferdam log verify`, `checkpoint` and `prove`: evidence that a log is what was written.

use std::path::Path;

use cofferdam::record::{
    EvidenceError, Log, ProofTarget, VerifierKey, VerifyOptions, VerifyReport, WitnessKey,
    WitnessStatus, check_proof, copied_logs, log_key, prove as prove_line, verify as verify_log,
    verify_with,
};
use cofferdam::records::witness_keys;
use cofferdam_files::read_named_ambient;
use cofferdam_tool::text::without_byte_order_mark;
use serde_json::json;

use crate::args::log::{LogDirectoryArgs, LogProveArgs, LogVerifyArgs};
use crate::exit::{Exit, UsageError};
use crate::print;

/// Maximum bytes of a file with checkpoints or a proof.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn verify(args: &LogVerifyArgs) -> anyhow::Result<Exit> {
    let (directory, config) = super::directory(&args.log)?;
    let kept = args.kept.iter().map(|path| read_kept(path));
    let kept = kept.collect::<anyhow::Result<Vec<_>>>()?;
    let key = args.key.as_deref().map(parse_key).transpose()?;
    let mut witnesses = config.as_ref().map(witness_keys).transpose()?.unwrap_or_default();
    for typed in &args.witness {
        let key = WitnessKey::parse(typed);
        witnesses.push(key.map_err(|error| UsageError(format!("--witness: {error}")))?);
    }
    let options = VerifyOptions { kept: &kept, key: key.as_ref(), witnesses: &witnesses };
    let unusable = |error: &dyn std::fmt::Display| UsageError(error.to_string());
    let copies = copied_logs(&directory).map_err(|error| unusable(&error))?;
    let is_collection = !copies.is_empty();
    if is_collection && (!kept.is_empty() || key.is_some()) {
        let message = "--kept and --key are about one log; name its folder with --directory, such \
                       as DIR/logs/3f2a91c0…";
        return Err(UsageError(message.to_owned()).into());
    }
    let mut exit = Exit::Ok;
    for log in if is_collection { copies } else { vec![directory] } {
        let report = verify_with(&log, options).map_err(|error| unusable(&error))?;
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        if args.json {
            let mut line = report_json(&report);
            if let Some(members) = line.as_object_mut().filter(|_| is_collection) {
                members.insert("log".to_owned(), json!(name));
            }
            print::result(&line.to_string())?;
        } else {
            if is_collection {
                print::note(&format!("log {name}:"));
            }
            show(&report)?;
        }
        if !report.is_intact() {
            exit = Exit::ToolFailure;
        }
    }
    Ok(exit)
}

fn show(report: &VerifyReport) -> anyhow::Result<()> {
    for finding in &report.findings {
        print::result(&finding.to_string())?;
    }
    if report.findings_left_out > 0 {
        print::result(&format!("and {} more", report.findings_left_out))?;
    }
    let count =
        |count: u64, noun| print::counted(usize::try_from(count).unwrap_or(usize::MAX), noun);
    let (lines, segments) = (count(report.lines, "line"), count(report.segments, "segment"));
    print::verdict(report.is_intact(), &format!("{lines} in {segments}"))?;
    if report.lines_unsealed > 0 {
        print::note(&format!(
            "note: {} behind the last checkpoint; nothing shows a change of them yet",
            count(report.lines_unsealed, "line")
        ));
    }
    if report.segments_unclosed > 0 {
        print::note(&format!(
            "note: {} without an end: a host is running or was killed",
            count(report.segments_unclosed, "segment")
        ));
    }
    if !report.pruned.is_empty() {
        print::note(&format!(
            "note: {} removed by retention",
            print::counted(report.pruned.len(), "segment")
        ));
    }
    for witness in &report.witnesses {
        let name = &witness.name;
        match witness.at {
            Some(at) => {
                let checkpoints = count(witness.checkpoints, "checkpoint");
                print::note(&format!("note: {name} has signed {checkpoints}, the last at {at}"));
            }
            None => print::note(&format!("note: {name} has signed no checkpoint of this log")),
        }
    }
    if report.kept_checkpoints == 0 && report.witnesses.iter().all(|witness| witness.at.is_none()) {
        print::note(
            "note: whoever can use the key of this machine could have rewritten the log; \
             compare it with a checkpoint that was kept elsewhere: --kept FILE",
        );
    }
    Ok(())
}

fn report_json(report: &VerifyReport) -> serde_json::Value {
    let finding = |finding: &cofferdam::record::LogFinding| {
        json!({
            "segment": finding.segment,
            "line": finding.line,
            "message": finding.kind.to_string(),
        })
    };
    let witness = |witness: &WitnessStatus| json!({ "name": witness.name, "checkpoints": witness.checkpoints, "at": witness.at });
    json!({
        "is_intact": report.is_intact(),
        "segments": report.segments,
        "lines": report.lines,
        "lines_unsealed": report.lines_unsealed,
        "segments_unclosed": report.segments_unclosed,
        "torn_tails": report.torn_tails,
        "kept_checkpoints": report.kept_checkpoints,
        "witnesses": report.witnesses.iter().map(witness).collect::<Vec<_>>(),
        "pruned": report.pruned,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "findings_left_out": report.findings_left_out,
    })
}

pub(super) fn checkpoint(args: &LogDirectoryArgs) -> anyhow::Result<Exit> {
    let (directory, _) = super::directory(args)?;
    let report =
        verify_log(&directory, &[], None).map_err(|error| UsageError(error.to_string()))?;
    if !report.is_intact() {
        print::note("error: the log is damaged; `cofferdam log verify` says where");
        return Ok(Exit::ToolFailure);
    }
    for note in &report.frontier {
        print::result(note.trim_end_matches('\n'))?;
        print::result("")?;
    }
    print::note(&format!("key: {}", log_key(&directory)?));
    Ok(Exit::Ok)
}

pub(super) fn prove(args: &LogProveArgs) -> anyhow::Result<Exit> {
    if let (Some(file), Some(key)) = (&args.check, &args.key) {
        let proven = match check_proof(&read(file)?, &parse_key(key)?) {
            Ok(proven) => proven,
            Err(error) => {
                let what = match &error {
                    EvidenceError::Proof(_) => "",
                    _ => "the proof does not hold: ",
                };
                print::note(&format!("error: {}: {what}{error}", file.display()));
                return Ok(Exit::ToolFailure);
            }
        };
        let segment = &proven.checkpoint.segment;
        print::note(&format!("line {} of {segment} is in the log:", proven.number));
        print::result(&proven.line)?;
        return Ok(Exit::Ok);
    }
    let (directory, _) = super::directory(&args.log)?;
    let log = Log::open(&directory).map_err(|error| UsageError(error.to_string()))?;
    let id = args.id.as_deref().unwrap_or_default();
    let call = log.find(id).map_err(|error| UsageError(error.to_string()))?;
    let proof = prove_line(&directory, ProofTarget::Call(&call.id))?;
    print::result(&serde_json::to_string(&proof)?)?;
    Ok(Exit::Ok)
}

/// Reads a file with checkpoints that were kept elsewhere.
fn read_kept(path: &Path) -> anyhow::Result<String> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    if without_byte_order_mark(&text).trim().is_empty() {
        let message = format!(
            "--kept: {} has no checkpoint; expected what `cofferdam log checkpoint` printed",
            path.display()
        );
        return Err(UsageError(message).into());
    }
    Ok(text)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = read_named_ambient(path, FILE_BYTES_MAX);
    Ok(read.map_err(|error| UsageError(format!("{} cannot be read: {error}", path.display())))?)
}

fn parse_key(typed: &str) -> anyhow::Result<VerifierKey> {
    VerifierKey::parse(typed).map_err(|error| UsageError(format!("--key: {error}")).into())
}
