use super::*;

fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let project = Project::open(directory.path()).unwrap();
    (directory, project)
}

fn entry_of(files: &[(&str, &str)]) -> Result<PathBuf, String> {
    let settings = [("plugin.toml", "[build]\nname = \"x\"\nlanguage = \"typescript\"\n")];
    let (_directory, project) = project(&[&settings, files].concat());
    entry(&project).map_err(|error| error.to_string())
}

#[test]
fn the_main_file_is_found() {
    assert_eq!(entry_of(&[("main.js", ""), ("src/main.ts", "")]), Ok("src/main.ts".into()));
    assert_eq!(entry_of(&[("main.js", "")]), Ok("main.js".into()));
    let missing = "there is no main file: none of src/main.ts, src/main.js, main.ts, main.js; say which it is with `[build] entry` in \
                   plugin.toml";
    assert_eq!(entry_of(&[]), Err(missing.to_owned()));
}

#[test]
fn the_main_file_is_the_one_that_was_named() {
    let settings = |entry: &str| {
        format!("[build]\nname = \"x\"\nlanguage = \"javascript\"\nentry = \"{entry}\"\n")
    };
    let (_directory, there) =
        project(&[("plugin.toml", &settings("a/b.js")), ("a/b.js", ""), ("main.js", "")]);
    assert_eq!(entry(&there).unwrap(), PathBuf::from("a/b.js"));
    let (_directory, gone) = project(&[("plugin.toml", &settings("c.js")), ("main.js", "")]);
    let error = entry(&gone).unwrap_err().to_string();
    assert_eq!(error, "`[build] entry` in plugin.toml is `c.js`, and there is no such file");
}

#[test]
fn the_wrapper_imports_the_main_file() {
    let text = wrapper(Path::new("src/it\"s.js"));
    assert!(text.starts_with("import plugin from \"../src/it\\\"s.js\";\n"), "{text}");
}

#[test]
fn what_the_bundle_imports_is_what_the_component_imports() {
    let work = tempfile::tempdir().unwrap();
    let bundle = Bundle::new(work.path());
    let report = r#"{"inputs":{},"outputs":{"plugin.js":{"bytes":1,"imports":[
        {"path":"wasi:cli/stderr@0.2.12","kind":"import-statement","external":true},
        {"path":"cofferdam:plugin/files@0.1.0","kind":"import-statement","external":true},
        {"path":"cofferdam:plugin/call@0.1.0","kind":"import-statement","external":true}]}}}"#;
    fs::write(&bundle.report, report).unwrap();
    let modules = bundle.modules().unwrap();
    assert_eq!(
        modules.iter().filter_map(|module| interface(module)).collect::<Vec<_>>(),
        [ImportedInterface::Call, ImportedInterface::Files]
    );
    fs::write(&bundle.report, "[]").unwrap();
    assert!(bundle.modules().is_err());
}

/// Returns the world of a bundle with these imports, and checks that it can be parsed.
fn world(modules: &[&str]) -> String {
    let work = tempfile::tempdir().unwrap();
    write_world(work.path(), &modules.iter().map(|&module| module.to_owned()).collect()).unwrap();
    // The toolchain uses the same parser.
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(work.path().join("wit")).unwrap();
    assert!(resolve.select_world(&[package], Some("plugin")).is_ok());
    fs::read_to_string(work.path().join("wit/world.wit")).unwrap()
}

#[test]
fn the_world_has_what_the_globals_need() {
    assert_eq!(
        world(&["cofferdam:plugin/secrets@0.1.0", "wasi:cli/stderr@0.2.12"]),
        "package cofferdam:plugin@0.1.0;\n\nworld plugin {\n  import wasi:cli/stderr@0.2.12;\n  import wasi:random/random@0.2.12;\n  \
         import secrets;\n  export tools;\n}\n"
    );
}

#[test]
fn requests_and_timers_have_names_of_the_build() {
    let requests = world(&["host:http/types@0.2.11", "host:io/poll@0.2.11"]);
    assert!(requests.contains("import host:http/types@0.2.11;\n"), "{requests}");
    assert!(!world(&["host:io/poll@0.2.11"]).contains("http"));
}

#[test]
fn the_imports_of_a_component_get_their_names_in_wasi() {
    let (mut types, mut section) =
        (wasm_encoder::ComponentTypeSection::new(), wasm_encoder::ComponentImportSection::new());
    types.instance(&wasm_encoder::InstanceType::new());
    for name in ["host:io/poll@0.2.11", "wasi:io/poll@0.2.12"] {
        section.import(name, wasm_encoder::ComponentTypeRef::Instance(0));
    }
    let mut component = wasm_encoder::Component::new();
    component.section(&types).section(&section);
    let mut outer = component.clone();
    outer.section(&wasm_encoder::NestedComponentSection(&component));
    let restored = imports::restore_names(outer.finish()).unwrap();
    let count =
        |name: &str| restored.windows(name.len()).filter(|part| *part == name.as_bytes()).count();
    // Those of a nested component are names between the two.
    assert_eq!((count("wasi:io/poll@0.2.11"), count("host:io/poll@0.2.11")), (1, 1));
    assert!(imports::restore_names(b"\0asm?".to_vec()).is_err());
}

struct Silent;

impl crate::StepObserver for Silent {
    fn begin(&self, _: &str) {}
    fn end(&self, _: &str, _: std::time::Duration) {}
    fn note(&self, _: &str) {}
}

#[test]
fn a_missing_program_is_named_with_what_installs_it() {
    let (_directory, project) =
        project(&[("package.json", "{}"), ("plugin.toml", "[build]\nname = \"x\"\n")]);
    let mut command = Command::new(program(project.directory(), "no-such-program"));
    let error =
        run(&project, &Steps::new(&Silent, false), "trying", &mut command).unwrap_err().to_string();
    let name = if cfg!(windows) { "no-such-program.cmd" } else { "no-such-program" };
    assert_eq!(
        error,
        format!(
            "{name}, a package of npm, is missing (looked for in node_modules of the project and of the folders above it, and on the \
             PATH). Install it with\n  npm install\nor\n  npm install --save-dev esbuild@0.28.2 \
             componentize-qjs@0.4.5"
        )
    );
}

#[test]
fn a_program_of_the_project_comes_first() {
    let settings = "[build]\nname = \"x\"\nlanguage = \"javascript\"\n";
    let file =
        if cfg!(windows) { "node_modules/.bin/esbuild.cmd" } else { "node_modules/.bin/esbuild" };
    let (_directory, project) = project(&[("plugin.toml", settings), (file, "")]);
    assert_eq!(program(project.directory(), "esbuild"), project.directory().join(file));
}
