//! Builds a project and writes the component, without checking or running it:
//! `build DIRECTORY [OUTPUT]`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_author::{BuildOptions, Project, StepObserver, Steps, build};

struct Printed;

#[allow(clippy::print_stderr, reason = "a program")]
impl StepObserver for Printed {
    fn begin(&self, step: &str) {
        eprintln!("{step} …");
    }

    fn end(&self, step: &str, took: Duration) {
        eprintln!("{step}: {} ms", took.as_millis());
    }

    fn note(&self, text: &str) {
        eprintln!("{text}");
    }
}

#[allow(clippy::print_stderr, reason = "a program")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: build DIRECTORY [OUTPUT]")?;
    let project = Project::open(directory.as_ref())?;
    let built = build(&project, &BuildOptions::default(), &Steps::new(&Printed, false));
    let component = built.map_err(|error| error.to_string())?;
    let output = arguments.next().map_or_else(|| project.component(), PathBuf::from);
    if let Some(folder) = output.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&output, &component)?;
    eprintln!("{} ({} bytes)", output.display(), component.len());
    Ok(())
}
