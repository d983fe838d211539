use cofferdam_files::{DirectoryOptions, DirectoryStore, MemoryStore, Quota, WriteMode};

use super::*;

async fn store(files: &[&str]) -> Arc<dyn FileStore> {
    let store = MemoryStore::new(Quota::default());
    for file in files {
        let path = StorePath::file(file).unwrap();
        let name = path.split().map(|(parent, _)| parent.name().to_owned()).unwrap_or_default();
        let text = match path.name() {
            SKILL_FILE => format!("---\nname: {name}\ndescription: d\n---\n"),
            _ => "text".to_owned(),
        };
        store.write(&path, text.into_bytes(), WriteMode::Create).await.unwrap();
    }
    Arc::new(store)
}

fn names(found: &Discovery) -> Vec<&str> {
    found.skills.iter().map(|skill| skill.front_matter().name.as_str()).collect()
}

async fn search(roots: &[SkillRoot]) -> Discovery {
    discover(roots, &["wasm".to_owned()], &SkillLimits::default()).await
}

#[tokio::test]
async fn a_skill_lies_two_levels_deep_at_most_and_holds_no_other() {
    let store = store(&[
        "a/SKILL.md",
        "a/b/SKILL.md",
        "g/c/SKILL.md",
        "g/h/d/SKILL.md",
        "e/skill.md",
        "f/SKILL.md/x.md",
    ])
    .await;
    assert_eq!(names(&search(&[SkillRoot::new(Arc::clone(&store))]).await), ["a", "c"]);
    let inside = SkillRoot::in_directory(store, StorePath::directory("g/h").unwrap());
    assert_eq!(names(&search(&[inside]).await), ["d"]);
}

#[tokio::test]
async fn a_root_is_a_skill_where_its_name_is_known() {
    let store = store(&["a/SKILL.md", "a/x.md"]).await;
    let directory = StorePath::directory("a").unwrap();
    let root = SkillRoot::in_directory(Arc::clone(&store), directory.clone());
    let found = search(&[root]).await;
    assert_eq!(
        (names(&found), found.skills[0].resources().collect::<Vec<_>>()),
        (vec!["a"], vec!["x.md"])
    );
    let below: Arc<dyn FileStore> = Arc::new(cofferdam_files::Subtree::new(store, directory));
    assert_eq!(names(&search(&[SkillRoot::new(Arc::clone(&below)).named("a")]).await), ["a"]);
    let unnamed = search(&[SkillRoot::new(below)]).await;
    assert!(matches!(
        unnamed.skipped[0].reason,
        SkipReason::Invalid(InvalidSkill::OtherDirectory { .. })
    ));
}

#[tokio::test]
async fn the_first_of_a_name_wins_in_the_order_of_roots_and_of_bytes() {
    let first = store(&["z/s/SKILL.md", "z-1/s/SKILL.md"]).await;
    let second = store(&["a/s/SKILL.md", "t/SKILL.md"]).await;
    let found = search(&[SkillRoot::new(first), SkillRoot::new(second)]).await;
    let loaded: Vec<_> =
        found.skills.iter().map(|skill| (skill.root(), skill.directory().as_str())).collect();
    assert_eq!(loaded, [(0, "z-1/s"), (1, "t")]);
    let skipped: Vec<_> =
        found.skipped.iter().map(|skipped| (skipped.root, skipped.directory.as_str())).collect();
    assert_eq!(skipped, [(0, "z/s"), (1, "a/s")]);
    assert_eq!(found.skipped[1].reason.to_string(), "there is a skill `s` before it, in `z-1/s`");
}

#[tokio::test]
async fn resources_and_scripts_are_in_the_skill_and_one_level_below() {
    let store = store(&[
        "a/SKILL.md",
        "a/.md",
        "a/.hidden.txt",
        "a/B.JSON",
        "a/no-extension",
        "a/run.WASM",
        "a/x.py",
        "a/sub/SKILL.md",
        "a/sub/c.csv",
        "a/sub/t.wasm",
        "a/sub/sub/d.md",
        "a/sub/sub/u.wasm",
        "a/sub-1/e.yml",
        "a/pic.png",
    ])
    .await;
    let found = search(&[SkillRoot::new(store)]).await;
    let skill = &found.skills[0];
    assert_eq!(
        skill.resources().collect::<Vec<_>>(),
        [".hidden.txt", "B.JSON", "sub-1/e.yml", "sub/c.csv"]
    );
    assert_eq!(skill.scripts().collect::<Vec<_>>(), ["run.WASM", "sub/t.wasm"]);
    assert_eq!(skill.scripts_without_runner().collect::<Vec<_>>(), ["x.py"]);
}

#[tokio::test]
async fn what_is_too_much_is_left_out_and_reported() {
    let store =
        store(&["a/SKILL.md", "a/1.md", "a/2.md", "a/3.md", "b/SKILL.md", "c/SKILL.md"]).await;
    let limits = SkillLimits { skills_max: 2, resources_max: 2, ..SkillLimits::default() };
    let found = discover(&[SkillRoot::new(Arc::clone(&store))], &[], &limits).await;
    assert_eq!(names(&found), ["a", "b"]);
    assert_eq!(found.skills[0].resources().len(), 2);
    let reasons: Vec<_> = found.skipped.iter().map(|skipped| skipped.reason.to_string()).collect();
    let rest = "the rest is left out";
    assert_eq!(
        reasons,
        [
            format!("there are more than 2 resources; {rest}"),
            format!("there are more than 2 skills; {rest}")
        ]
    );
    let limits = SkillLimits { directories_max: 3, ..SkillLimits::default() };
    let found = discover(&[SkillRoot::new(Arc::clone(&store))], &[], &limits).await;
    assert_eq!(names(&found), ["a", "b"]);
    let limits = SkillLimits { skill_bytes_max: 10, ..SkillLimits::default() };
    let found = discover(&[SkillRoot::new(store)], &[], &limits).await;
    assert!(found.skills.is_empty() && found.skipped.len() == 3, "{found:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let skill = "---\nname: a\ndescription: d\n---\n";
    std::fs::create_dir_all(at("roots/linked-file")).unwrap();
    std::fs::create_dir_all(at("a")).unwrap();
    std::fs::write(at("a/SKILL.md"), skill).unwrap();
    std::os::unix::fs::symlink(at("a"), at("roots/a")).unwrap();
    std::os::unix::fs::symlink(at("a/SKILL.md"), at("roots/linked-file/SKILL.md")).unwrap();
    let store = DirectoryStore::open_ambient(&at("roots"), DirectoryOptions::default()).unwrap();
    let found = search(&[SkillRoot::new(Arc::new(store))]).await;
    assert!(found.skills.is_empty() && found.skipped.is_empty(), "{found:?}");
}
