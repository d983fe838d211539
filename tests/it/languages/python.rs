//! Functions that only Python has. Steps are statements; the value of `it` is the answer.

use cofferdam_files::Quota;

use super::{Case, PYTHON, cases, is_built};
use cofferdam_tests::Host;

/// Runs statements in one call, in one namespace, and compares each answer.
async fn check(case: &Case, steps: &[(&str, &str)]) {
    let imports = vec![
        "python",
        "import csv, fileinput, filecmp, glob, io, json, logging, os, pathlib, pickle",
    ];
    let more = vec![
        "python",
        "import shutil, sqlite3, tarfile, tempfile, zipfile; from pathlib import Path",
    ];
    let code = steps.iter().map(|(code, _)| vec!["python", code]);
    let answers = case.answers(&[imports, more].into_iter().chain(code).collect::<Vec<_>>()).await;
    for ((code, expected), answer) in steps.iter().zip(&answers[2..]) {
        assert_eq!(answer, expected, "{}: {code}", case.name);
    }
}

async fn everywhere(steps: &[(&str, &str)], expected: &str) {
    for case in cases(PYTHON, Quota::default()).await {
        check(&case, steps).await;
        assert_eq!(case.shown().await, expected, "{}", case.name);
    }
}

#[tokio::test]
async fn text_is_decoded_and_line_ends_are_translated() {
    let steps = [
        ("with open('/data/t', 'w', newline='') as f: f.write('grüße\\r\\nend\\n')", "None"),
        ("with open('/data/t') as f: it = f.readlines()", "['grüße\\n', 'end\\n']"),
        ("with open('/data/t', newline='') as f: it = f.read()", "grüße\r\nend\n"),
        ("with open('/data/t', 'a') as f: f.write('more'); it = f.tell()", "17"),
        (
            "with open('/data/t', 'r+') as f: f.readline(); at = f.tell(); f.seek(at); it = \
             f.readline()",
            "end\n",
        ),
        ("with open('/data/t', 'rb') as f: it = f.readinto(bytearray(5))", "5"),
        ("with open('/data/t') as f: it = f.write('x')", "UnsupportedOperation: not writable"),
        ("with open('/data/raw', 'wb', buffering=0) as f: it = f.write(b'raw')", "3"),
        ("it = open('/data/raw', 'rb', buffering=0).readall()", "b'raw'"),
    ];
    everywhere(&steps, "raw=raw t=grüße\r\nend\nmore").await;
}

#[tokio::test]
async fn pathlib_works() {
    let steps = [
        (
            "d = Path('/data/d'); (d / 'e').mkdir(parents=True); (d / 'e').mkdir(exist_ok=True)",
            "None",
        ),
        ("it = (d / 'a.txt').write_text('text')", "4"),
        ("it = (d / 'a.txt').read_bytes()", "b'text'"),
        ("(d / 'new').touch(); (d / 'new').touch(); it = (d / 'new').exists()", "True"),
        (
            "(d / 'new').touch(exist_ok=False)",
            "FileExistsError: [Errno 20] File exists: '/data/d/new'",
        ),
        (
            "it = sorted(str(path) for path in Path('/data').rglob('*'))",
            "['/data/d', '/data/d/a.txt', '/data/d/e', '/data/d/new']",
        ),
        (
            "it = (d / 'a.txt').is_file(), d.is_dir(), (d / 'none').exists(), d.is_symlink()",
            "(True, True, False, False)",
        ),
        ("it = str((d / '..' / 'd' / 'a.txt').resolve())", "/data/d/a.txt"),
        ("it = str((d / 'a.txt').rename('/data/b.txt'))", "/data/b.txt"),
        (
            "(d / 'new').unlink(); (d / 'new').unlink(missing_ok=True); (d / 'e').rmdir(); it = \
             list(d.iterdir())",
            "[]",
        ),
        ("it = Path('/data/b.txt').stat().st_size", "4"),
    ];
    everywhere(&steps, "d/ b.txt=text").await;
}

#[tokio::test]
async fn shutil_copies_and_moves_files_and_trees() {
    let steps = [
        ("os.makedirs('/data/d/e'); open('/data/d/e/a', 'w').write('text')", "None"),
        ("it = shutil.copyfile('/data/d/e/a', '/data/one')", "/data/one"),
        ("it = shutil.copy('/data/one', '/data/d')", "/data/d/one"),
        // `copy2` copies times too.
        ("it = shutil.copy2('/data/one', '/data/two')", "/data/two"),
        ("it = shutil.copytree('/data/d', '/data/tree')", "/data/tree"),
        ("it = shutil.move('/data/two', '/data/tree/e')", "/data/tree/e/two"),
        ("it = shutil.move('/data/tree', '/data/moved')", "/data/moved"),
        ("it = shutil.copy2('/look/a', '/data/look')", "/data/look"),
        (
            "it = shutil.move('/look/a', '/data/moved/look')",
            "OSError: [Errno 69] Read-only file system: '/look/a'",
        ),
        ("it = filecmp.cmp('/data/moved/e/a', '/data/d/e/a', shallow=False)", "True"),
        ("shutil.rmtree('/data/d')", "None"),
    ];
    let left = "moved/ moved/e/ look=kept moved/e/a=text moved/e/two=text moved/look=kept \
        moved/one=text one=text";
    everywhere(&steps, left).await;
}

#[tokio::test]
async fn os_walks_and_makes_what_is_missing() {
    let steps = [
        ("os.makedirs('/data/d/e/f'); os.makedirs('/data/d/e/f', exist_ok=True)", "None"),
        ("open('/data/d/a', 'w').close(); open('/data/d/e/b.txt', 'w').close()", "None"),
        (
            "it = list(os.walk('/data'))",
            "[('/data', ['d'], []), ('/data/d', ['e'], ['a']), ('/data/d/e', ['f'], ['b.txt']), \
             ('/data/d/e/f', [], [])]",
        ),
        (
            "it = [at for at, _, _ in os.walk('/data', topdown=False)]",
            "['/data/d/e/f', '/data/d/e', '/data/d', '/data']",
        ),
        ("it = os.listdir('/data/d')", "['e', 'a']"),
        (
            "it = [(e.name, e.is_dir(), e.stat().st_size) for e in os.scandir('/data/d/e') if \
             e.is_file()]",
            "[('b.txt', False, 0)]",
        ),
        ("it = glob.glob('/data/**/*.txt', recursive=True)", "['/data/d/e/b.txt']"),
        (
            "os.renames('/data/d/e/b.txt', '/data/x/y/b.txt'); it = os.listdir('/data/x/y')",
            "['b.txt']",
        ),
        ("os.removedirs('/data/d/e/f')", "None"),
        ("os.replace('/data/d/a', '/data/x/y/b.txt')", "None"),
        (
            "it = os.access('/data/x', os.W_OK), os.access('/data/none', os.F_OK), \
             os.access('/look/a', os.W_OK)",
            "(True, False, False)",
        ),
        (
            "s = os.stat('/data/x/y/b.txt'); it = oct(s.st_mode), s.st_nlink, s.st_size, \
             s.st_mtime > 1e9",
            "('0o100000', 1, 0, True)",
        ),
    ];
    everywhere(&steps, "d/ x/ x/y/ x/y/b.txt=").await;
}

#[tokio::test]
async fn errors_are_the_exceptions_that_programs_catch() {
    let caught = "def caught(f, *a):\n try: f(*a)\n except Exception as e: return \
        type(e).__name__\n return 'none'";
    let steps = [
        (caught, "None"),
        ("os.makedirs('/data/d/e'); open('/data/a', 'w').close()", "None"),
        (
            "it = caught(open, '/data/none'), caught(os.unlink, '/data/none'), caught(os.listdir, \
             '/data/none')",
            "('FileNotFoundError', 'FileNotFoundError', 'FileNotFoundError')",
        ),
        (
            "it = caught(open, '/data/a', 'x'), caught(os.mkdir, '/data/d')",
            "('FileExistsError', 'FileExistsError')",
        ),
        (
            "it = caught(open, '/data/d'), caught(open, '/data/d', 'w'), caught(os.unlink, \
             '/data/d')",
            "('IsADirectoryError', 'IsADirectoryError', 'IsADirectoryError')",
        ),
        (
            "it = caught(os.listdir, '/data/a'), caught(os.rmdir, '/data/a')",
            "('NotADirectoryError', 'NotADirectoryError')",
        ),
        (
            "it = caught(os.symlink, 'a', '/data/l'), caught(os.link, '/data/a', '/data/l')",
            "('PermissionError', 'PermissionError')",
        ),
        (
            "it = caught(os.rmdir, '/data/d'), caught(open, '/look/a', 'w'), caught(os.rename, \
             '/data/a', '/look/b')",
            "('OSError', 'OSError', 'OSError')",
        ),
        // Modes, owners and times are not stored.
        (
            "os.chmod('/data/a', 0o600); os.utime('/data/a', (0, 0)); it = \
             os.stat('/data/a').st_mtime > 1e9",
            "True",
        ),
        (
            "it = caught(os.utime, '/data/none'), caught(os.utime, '/look/a')",
            "('FileNotFoundError', 'OSError')",
        ),
    ];
    everywhere(&steps, "d/ d/e/ a=").await;
}

#[tokio::test]
async fn temporary_files_work_in_a_mount_and_are_gone_afterwards() {
    let steps = [
        (
            "it = tempfile.gettempdir()",
            "FileNotFoundError: [Errno 44] No usable temporary directory found in ['/tmp', \
             '/var/tmp', '/usr/tmp', '/']",
        ),
        ("tempfile.tempdir = '/data'", "None"),
        (
            "with tempfile.TemporaryFile() as f: f.write(b'text'); f.seek(0); it = f.read()",
            "b'text'",
        ),
        (
            "with tempfile.NamedTemporaryFile() as f: f.write(b'text'); f.flush(); it = \
             os.path.getsize(f.name)",
            "4",
        ),
        ("it = os.path.exists(f.name)", "False"),
        (
            "with tempfile.TemporaryDirectory() as d: open(d + '/a', 'w').close(); it = \
             os.listdir(d)",
            "['a']",
        ),
        ("it = os.path.exists(d)", "False"),
        (
            "fd, name = tempfile.mkstemp(); os.write(fd, b'x'); os.close(fd); os.rename(name, \
             '/data/a')",
            "None",
        ),
    ];
    everywhere(&steps, "a=x").await;
}

#[tokio::test]
async fn a_database_in_a_file_is_there_for_the_next_call() {
    for case in cases(PYTHON, Quota::default()).await {
        let rows = "db = sqlite3.connect('/data/db'); db.execute('create table t (n)'); \
                    db.executemany('insert into t values (?)', [(n,) for n in range(2000)]); \
                    db.commit()";
        check(
            &case,
            &[
                (rows, "None"),
                ("db.execute('delete from t where n < 1000'); db.rollback()", "None"),
                ("db.execute('delete from t where n >= 1500'); db.commit(); db.close()", "None"),
            ],
        )
        .await;
        let read = "db = sqlite3.connect('/data/db'); it = db.execute('select count(*), sum(n) \
            from t').fetchone()";
        check(&case, &[(read, "(1500, 1124250)"), ("it = os.listdir('/data')", "['db']")]).await;
        let name = &case.name;
        assert!(case.bytes("db").await.starts_with(b"SQLite format 3\0"), "{name}");
    }
}

#[tokio::test]
async fn archives_logs_and_pickles_are_files_like_others() {
    let steps = [
        ("os.mkdir('/data/d'); open('/data/d/a', 'w').write('text')", "None"),
        ("with tarfile.open('/data/t', 'w:gz') as t: t.add('/data/d', 'd')", "None"),
        ("with tarfile.open('/data/t') as t: t.extractall('/data/out', filter='data')", "None"),
        ("with zipfile.ZipFile('/data/z', 'w') as z: z.write('/data/d/a', 'grün')", "None"),
        (
            "with zipfile.ZipFile('/data/z') as z: it = z.namelist(), z.read('grün')",
            "(['grün'], b'text')",
        ),
        (
            "pickle.dump({1: 2}, open('/data/p', 'wb')); it = pickle.load(open('/data/p', 'rb'))",
            "{1: 2}",
        ),
        (
            "logging.basicConfig(filename='/data/log', level=20); logging.info('said'); it = \
             list(fileinput.input('/data/log'))",
            "['INFO:root:said\\n']",
        ),
        ("with open('/data/c', 'w', newline='') as f: csv.writer(f).writerow(['a,b', 1])", "None"),
        ("for name in ['t', 'z', 'p']: os.unlink('/data/' + name)", "None"),
    ];
    everywhere(&steps, "d/ out/ out/d/ c=\"a,b\",1\r\n d/a=text log=INFO:root:said\n out/d/a=text")
        .await;
}

/// The build leaves a function in the component that is not a tool.
#[tokio::test]
async fn only_the_functions_of_the_author_are_tools() {
    if !is_built(PYTHON) {
        return;
    }
    let mut host = Host::new();
    host.load(PYTHON).await;
    let names: Vec<_> = host.toolset().definitions().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["files"]);
}
