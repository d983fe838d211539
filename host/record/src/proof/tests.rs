//! Proofs hold for their line only, and for nothing else.

use super::*;
use crate::sealer::testing::TestLog;

fn proof(log: &TestLog, target: ProofTarget<'_>) -> Result<String, String> {
    let proof = prove(&log.path(), target).map_err(|error| error.to_string())?;
    Ok(serde_json::to_string(&proof).unwrap())
}

#[test]
fn proves_every_line_and_each_call() {
    let log = TestLog::new();
    let segment = log.closed(0, 1, 20, 7);
    log.closed(1, 2, 3, 7);
    let key = log.key.verifier();
    let text = std::fs::read_to_string(log.file(&segment)).unwrap();
    for (line, number) in text.lines().zip(1..) {
        let json = proof(&log, ProofTarget::Line { segment: &segment, line: number }).unwrap();
        let proven = check_proof(json.as_bytes(), key).unwrap();
        assert_eq!((&*proven.line, proven.number), (line, number));
        assert_eq!(proven.checkpoint.segment, segment);
    }
    let proven = check_proof(proof(&log, ProofTarget::Call("00000002-1")).unwrap().as_bytes(), key);
    assert!(proven.unwrap().line.contains(r#""id":"00000002-1""#));
    log.compress(&segment);
    assert!(proof(&log, ProofTarget::Call("00000001-19")).is_ok());
}

#[test]
fn says_why_there_is_no_proof() {
    let log = TestLog::new();
    let mut segment = log.start(0, 1);
    segment.call(0);
    let name = segment.name.clone();
    assert_eq!(
        proof(&log, ProofTarget::Call("00000001-0")).unwrap_err(),
        format!(
            "line 3 of `{name}` is behind the last checkpoint; a running host makes one every 60 \
             seconds"
        )
    );
    assert_eq!(
        proof(&log, ProofTarget::Call("00000001")).unwrap_err(),
        "no call in the log has the id `00000001`; `cofferdam log` lists ids"
    );
    for line in [0, 4, u64::MAX] {
        assert_eq!(
            proof(&log, ProofTarget::Line { segment: &name, line }).unwrap_err(),
            format!("the log has no line {line} in a segment `{name}`")
        );
    }
    segment.close();
    log.change(&name, |bytes| bytes[10] ^= 1);
    assert_eq!(
        proof(&log, ProofTarget::Call("00000001-0")).unwrap_err(),
        format!("`{name}` does not match its checkpoint; `cofferdam log verify` says more")
    );
}

#[test]
fn a_changed_proof_does_not_hold() {
    let log = TestLog::new();
    log.closed(0, 1, 20, 7);
    let key = log.key.verifier();
    let json = proof(&log, ProofTarget::Call("00000001-9")).unwrap();
    let original = check_proof(json.as_bytes(), key).unwrap();
    for at in 0..json.len() {
        let mut changed = json.clone().into_bytes();
        changed[at] ^= 1;
        if let Ok(proven) = check_proof(&changed, key) {
            assert_eq!(proven, original, "byte {at} is that of the hint, the key");
            assert!(at > json.find(r#""key""#).unwrap());
        }
    }
    let other = TestLog::new();
    assert!(check_proof(json.as_bytes(), other.key.verifier()).is_err());
    assert!(check_proof(b"{}", key).is_err());
    assert!(check_proof(&vec![b' '; PROOF_BYTES_MAX + 1], key).is_err());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_no_panic(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100),
        index: u64,
        path in proptest::collection::vec("[A-Za-z0-9+/=]{0,44}", 0..70),
        text in "\\PC{0,60}",
    ) {
        let key = VerifierKey::parse(
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        ).unwrap();
        proptest::prop_assert!(check_proof(&bytes, &key).is_err());
        let proof = InclusionProof {
            proof: PROOF_FORMAT.to_owned(),
            line: text.clone(),
            index,
            path,
            checkpoint: text.clone(),
            key: text,
        };
        proptest::prop_assert!(proof.check(&key).is_err());
    }
}
