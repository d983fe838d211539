//! `cofferdam keys`, `sign` and `verify`: signatures of plugins in registries.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use cofferdam::config::ConfigFile;
use cofferdam::registry::{
    ArtifactStatement, PluginFetcher, SigningKey, SigningRequest, StatementSummary,
    VerifiedArtifact, predicate_type, read_public_key_ambient, read_signing_key_ambient,
};
use serde_json::json;

use crate::args::{KeysCommand, SignArgs, VerifyArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};

/// Maximum size of a statement in bytes, which a signature contains whole.
const STATEMENT_BYTES_MAX: u64 = 700 * 1024;

pub(crate) fn keys(command: &KeysCommand) -> anyhow::Result<Exit> {
    let KeysCommand::New(args) = command;
    let (private, public) = (args.path.with_extension("key"), args.path.with_extension("pub"));
    let (key, pem) = SigningKey::generate()?;
    let key = key.public_key()?;
    write_new(&private, pem.expose(), true)?;
    if let Err(error) = write_new(&public, &key.to_pem(), false) {
        // A private key without its public key would be in the way of the next try.
        let _ = std::fs::remove_file(&private);
        return Err(error);
    }
    print::note(&format!("{} signs; keep it secret", private.display()));
    print::note(&format!("{} verifies; give it to those who use your plugins", public.display()));
    print::result(&key.id().to_string())?;
    Ok(Exit::Ok)
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, content: &str, is_private: bool) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if is_private {
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let created = options.open(path);
    let written = created.and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_all()
    });
    let failed =
        |error| UsageError(format!("{} cannot be created: {error}", path.display())).into();
    written.map_err(failed)
}

pub(crate) async fn sign(args: &SignArgs) -> anyhow::Result<Exit> {
    let request = signing_request(&args.key, &args.attest)?;
    let key = request.key.public_key()?.id();
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let fetcher = PluginFetcher::new_ambient(config.as_ref(), &host::operator())?;
    let manifest = fetcher.sign(&args.reference, request).await?;
    let pinned = args.reference.with_digest(manifest);
    if args.json {
        print::result(&json!({"reference": pinned, "manifest": manifest, "key": key}).to_string())?;
    } else {
        print::result(&pinned.to_string())?;
    }
    Ok(Exit::Ok)
}

/// Reads the key of the flag `--key FILE` and the statements of `--attest TYPE=FILE`.
pub(super) fn signing_request(key: &Path, attest: &[String]) -> anyhow::Result<SigningRequest> {
    let read = |named: &String| -> anyhow::Result<_> {
        let (kind, path) = named.split_once('=').ok_or_else(|| {
            UsageError(format!("`{named}` is not TYPE=FILE, such as cyclonedx=bom.json"))
        })?;
        let content =
            cofferdam_files::read_named_text_ambient(Path::new(path), STATEMENT_BYTES_MAX)
                .map_err(|error| UsageError(format!("{path} cannot be read: {error}")))?;
        let predicate = serde_json::from_str(&content)
            .map_err(|error| UsageError(format!("{path} is not JSON: {error}")))?;
        Ok(ArtifactStatement { predicate_type: predicate_type(kind)?, predicate })
    };
    let statements = attest.iter().map(read).collect::<anyhow::Result<_>>()?;
    Ok(SigningRequest { key: read_signing_key_ambient(key)?, statements })
}

pub(crate) async fn verify(args: &VerifyArgs) -> anyhow::Result<Exit> {
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let keys = args.keys.iter().map(|path| read_public_key_ambient(path));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let statement = args.statement.as_deref().map(predicate_type).transpose()?;
    let fetcher = PluginFetcher::new_ambient(config.as_ref(), &host::operator())?;
    let identity = args.identity.as_deref().zip(args.issuer.as_deref());
    let verified = fetcher.verify(&args.reference, keys, identity).await?;
    let pinned = args.reference.with_digest(verified.manifest);
    if let Some(kind) = statement {
        for predicate in verified.predicates(&kind)? {
            print::result(&predicate.to_string())?;
        }
        return Ok(Exit::Ok);
    }
    if args.readme {
        let readme = fetcher.readme(&args.reference, verified.manifest).await?;
        print::result(readme.strip_suffix('\n').unwrap_or(&readme))?;
        return Ok(Exit::Ok);
    }
    let VerifiedArtifact { manifest, signer, statements } = verified;
    let statements: Vec<_> = statements.iter().map(ArtifactStatement::summary).collect();
    if args.json {
        let report = json!({
            "reference": pinned,
            "manifest": manifest,
            "signer": signer,
            "statements": statements,
        });
        print::result(&report.to_string())?;
    } else {
        let line = |statement| format!("\nstates {}", shown(statement));
        let statements: String = statements.iter().map(line).collect();
        print::result(&format!("{pinned}\nsigned by {signer}{statements}"))?;
    }
    Ok(Exit::Ok)
}

/// Returns the type of a statement and what is known of its content.
pub(super) fn shown(statement: &StatementSummary) -> String {
    let StatementSummary { predicate_type, components, builder, commit, is_dirty, .. } = statement;
    let changes = if *is_dirty { " with changes" } else { "" };
    let facts = [
        components.map(|count| print::counted(count, "component")),
        builder.as_ref().map(|builder| format!("by {builder}")),
        commit.as_ref().map(|commit| format!("from commit {commit}{changes}")),
    ];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    let facts = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
    format!("{predicate_type}{facts}")
}
