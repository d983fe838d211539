//! Runs with checkpoints are used by one process at a time.

use std::fs::File;

use super::*;

/// Returns the lock files in `runs`, in order of time.
fn locks(scene: &Scene) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(scene.path("runs")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let mut locks: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "lock")).collect();
    locks.sort();
    locks
}

#[test]
fn a_run_goes_on_in_one_process_at_a_time() {
    let scene = review();
    let paused = scene.run(&["tides", "--checkpoints", "runs"]);
    assert_eq!(paused.code, Some(4), "{}", paused.stderr);
    let [lock] = &locks(&scene)[..] else { panic!("one lock for one run") };
    let held = File::options().write(true).open(lock).unwrap();
    held.try_lock().expect("the run has ended");
    let resume = ["--checkpoints", "runs", "--resume", "--answer", "approve-1=yes"];
    let refused = scene.run(&resume);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("is in use by another process"), "{}", refused.stderr);
    drop(held);
    let ran = scene.run(&resume);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Printed.\n"), "{}", ran.stderr);
    // The part after the answer is a run of its own.
    assert_eq!(locks(&scene).len(), 2);
    let missing = scene.run(&["--checkpoints", "runs", "--resume=0193c0ffee00a1b2c3d4-000002"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert_eq!(locks(&scene).len(), 2, "a checkpoint that does not exist has no lock");
}
