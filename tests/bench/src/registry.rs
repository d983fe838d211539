//! `registry`: a start with plugins that a lock file pins against a start with the same plugins as
//! files, and the verification of signatures.
//!
//! The plugins were fetched before; the store has them by their digests, and no start uses the
//! network. The goals are those of the project: at most 15 ms for 20 plugins, and at most 1 ms for
//! a signature.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use cofferdam_registry::testing::TestRegistry;
use cofferdam_registry::{
    Digest, SignatureBundle, SigningKey, SigstoreRoot, TrustRule, TrustedIdentity, WasmArtifact,
};
use cofferdam_tests::root;

use crate::copies::copies;
use crate::effort::Effort;
use crate::mcp::{cofferdam, serve};
use crate::measure::{Amount, Goal, Measure, Unit};
use crate::ratio::Ratio;
use crate::samples::Samples;
use crate::start::{First, configuration, time, warm_up, with};

pub(crate) const NAME: &str = "registry";
const ROUNDS: usize = 20;
const VERIFICATIONS: u32 = 200;
const PLUGINS: usize = 20;
/// Number of plugins in a quick run.
const QUICK: usize = 3;
/// Folder of the fixtures of signatures.
const FIXTURES: &str = "tests/signatures";

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut rows = vec![start(effort).await?];
    let manifest = Digest::of(b"manifest");
    let (key, _) = SigningKey::generate()?;
    let bundle = SignatureBundle::sign(manifest, &key)?;
    let rule = TrustRule {
        from: "ghcr.io/acme/*".parse()?,
        keys: vec![key.public_key()?],
        identities: Vec::new(),
        attested: Vec::new(),
    };
    let root = SigstoreRoot::from_json(&fixture("root.json")?)?;
    rows.push(signature(effort, "by a key", || {
        Ok(rule.check(manifest, std::slice::from_ref(&bundle), &root)?)
    })?);
    let identity = TrustedIdentity {
        identity: "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/*"
            .parse()?,
        issuer: "https://token.actions.githubusercontent.com".to_owned(),
    };
    let rule = TrustRule { keys: Vec::new(), identities: vec![identity], ..rule };
    let bundle = SignatureBundle::from_bytes(fixture("signed.json")?);
    let manifest = Digest::of(&fixture("manifest.json")?);
    let check = || Ok(rule.check(manifest, std::slice::from_ref(&bundle), &root)?);
    rows.push(signature(effort, "by an identity", check)?);
    Ok(rows)
}

fn fixture(name: &str) -> anyhow::Result<Vec<u8>> {
    let path = root().join(FIXTURES).join(name);
    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Measures one verification, with parsing.
fn signature<T>(
    effort: Effort,
    name: &str,
    check: impl Fn() -> anyhow::Result<T>,
) -> anyhow::Result<Measure> {
    let mut samples = Samples::default();
    for _ in 0..effort.times(VERIFICATIONS) {
        let started = Instant::now();
        check()?;
        samples.add(started.elapsed().as_secs_f64());
    }
    let amount = Amount::new(format!("{NAME}, a signature {name}"), Unit::Seconds, samples);
    Ok(amount.with_goal(Goal::AtMost(1e-3)).into())
}

/// Measures the additional time to the first answer.
async fn start(effort: Effort) -> anyhow::Result<Measure> {
    let plugins = if effort.is_quick { QUICK } else { PLUGINS };
    let folder = tempfile::tempdir()?;
    let files = configuration(folder.path(), plugins)?;
    let locked = locked_configuration(folder.path(), plugins).await?;
    let home = folder.path();
    for file in [&files, &locked] {
        warm_up(effort, file, Some(home))?;
    }
    let ratio =
        Ratio::new(format!("{NAME}, first call with {plugins} locked plugins, more than as files"));
    let first_call = |file: &Path| {
        let mut command = with(serve()?, file);
        command.env("HOME", home);
        time(command, First::Call, plugins)
    };
    let ours = async || first_call(&locked);
    let reference = async || first_call(&files);
    let difference = ratio.alternate(effort, ROUNDS, ours, reference).await?.difference();
    Ok(difference.with_goal(Goal::AtMost(15e-3)).into())
}

/// Publishes plugins in a registry of this process and adds them to a configuration.
async fn locked_configuration(home: &Path, plugins: usize) -> anyhow::Result<PathBuf> {
    let registry = TestRegistry::start().await?;
    let path = home.join("locked.toml");
    for (number, file) in copies(plugins, None)?.into_iter().enumerate() {
        let component = std::fs::read(file)?;
        let artifact = WasmArtifact::new(component.into(), &[], &[], &BTreeMap::new())?;
        let repository = format!("acme/p{number}");
        registry.add(&repository, "1", &artifact);
        let mut command = cofferdam("add", &root().join("target/test-cache"))?;
        command.arg(registry.reference(&format!("{repository}:1"))).arg("--config").arg(&path);
        command.args(["--yes", "--allow-unsigned"]).env("HOME", home);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        // The registry answers on this thread.
        let ran = tokio::task::spawn_blocking(move || command.output()).await??;
        let stderr = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "`cofferdam add` ended with {}: {stderr}", ran.status);
    }
    Ok(path)
}
