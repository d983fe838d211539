//! Provenance of artifacts that `cofferdam publish` has pushed, in the format of SLSA.
//!
//! It says from which work tree a component was published, and who ran that. It contains nothing
//! about the machine: no user, no host, no path, no time. Equal facts make equal statements.

use serde_json::{Map, Value, json};

use crate::statement::{ArtifactStatement, PROVENANCE};

/// Type of the build: a component of a work tree was published, as it was built before.
pub(crate) const BUILD_TYPE: &str = "urn:cofferdam:publish:v1";
/// Builder of a component that was published on a machine of its author.
const LOCAL_BUILDER: &str = "urn:cofferdam:builder:local";

/// Facts about the origin of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvenanceFacts {
    /// Address of the repository with the sources.
    pub repository: Option<String>,
    /// Commit of the work tree that contains the component.
    pub commit: Option<SourceCommit>,
    /// Workflow that publishes the component. Without one, its author does.
    pub workflow: Option<GithubWorkflow>,
}

/// Commit of a work tree of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCommit {
    /// Hexadecimal name of the commit.
    pub id: String,
    /// True if files of the work tree differ from the commit, or are not in it.
    pub is_dirty: bool,
}

/// Run of a workflow of GitHub Actions, by its environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubWorkflow {
    /// `GITHUB_SERVER_URL`.
    pub server: String,
    /// `GITHUB_REPOSITORY`.
    pub repository: String,
    /// `GITHUB_WORKFLOW_REF`.
    pub workflow: String,
    /// `GITHUB_REF`: branch or tag of the run.
    pub git_ref: Option<String>,
    /// `RUNNER_ENVIRONMENT`: `github-hosted` or `self-hosted`.
    pub runner: Option<String>,
}

impl GithubWorkflow {
    fn repository_url(&self) -> String {
        format!("{}/{}", self.server, self.repository)
    }

    /// Returns the identity of the builder, which is also that of its keyless signatures.
    fn id(&self) -> String {
        format!("{}/{}", self.server, self.workflow)
    }
}

impl ProvenanceFacts {
    /// Returns the statement with these facts.
    #[must_use]
    pub fn provenance(&self) -> ArtifactStatement {
        let workflow = self.workflow.as_ref();
        let repository = self.repository.clone();
        let repository = repository.or_else(|| Some(workflow?.repository_url()));
        let mut dependencies = Vec::new();
        if let Some(SourceCommit { id, .. }) = &self.commit {
            let mut dependency = json!({"digest": {"gitCommit": id}});
            let uri = repository.as_ref().map(|repository| format!("git+{repository}"));
            insert(&mut dependency, "uri", uri);
            dependencies.push(dependency);
        }
        let mut external = json!({});
        insert(&mut external, "source", repository);
        insert(&mut external, "ref", workflow.and_then(|it| it.git_ref.clone()));
        let mut internal = json!({"cofferdam": env!("CARGO_PKG_VERSION")});
        insert(&mut internal, "dirty", self.commit.as_ref().map(|it| it.is_dirty));
        insert(&mut internal, "runnerEnvironment", workflow.and_then(|it| it.runner.clone()));
        let builder = workflow.map_or_else(|| LOCAL_BUILDER.to_owned(), GithubWorkflow::id);
        let predicate = json!({
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": external,
                "internalParameters": internal,
                "resolvedDependencies": dependencies,
            },
            "runDetails": {"builder": {"id": builder}},
        });
        ArtifactStatement { predicate_type: PROVENANCE.to_owned(), predicate }
    }
}

/// Adds a member to an object if there is a value.
fn insert<T: Into<Value>>(object: &mut Value, name: &str, value: Option<T>) {
    let object: Option<&mut Map<String, Value>> = object.as_object_mut();
    if let (Some(object), Some(value)) = (object, value) {
        object.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_provenance_names_only_the_commit() {
        let commit = SourceCommit { id: "c0ffee".to_owned(), is_dirty: true };
        let source = ProvenanceFacts { commit: Some(commit), ..ProvenanceFacts::default() };
        let version = env!("CARGO_PKG_VERSION");
        let expected = json!({
            "buildDefinition": {
                "buildType": "urn:cofferdam:publish:v1",
                "externalParameters": {},
                "internalParameters": {"cofferdam": version, "dirty": true},
                "resolvedDependencies": [{"digest": {"gitCommit": "c0ffee"}}],
            },
            "runDetails": {"builder": {"id": "urn:cofferdam:builder:local"}},
        });
        assert_eq!(source.provenance().predicate, expected);
        assert!(source.provenance().summary().is_dirty);
        let unknown = ProvenanceFacts::default().provenance();
        assert_eq!(unknown.predicate["buildDefinition"]["resolvedDependencies"], json!([]));
    }

    #[test]
    fn a_workflow_is_the_builder_and_names_the_repository() {
        let workflow = GithubWorkflow {
            server: "https://github.com".to_owned(),
            repository: "acme/csv".to_owned(),
            workflow: "acme/csv/.github/workflows/release.yml@refs/tags/v1".to_owned(),
            git_ref: Some("refs/tags/v1".to_owned()),
            runner: Some("github-hosted".to_owned()),
        };
        let commit = SourceCommit { id: "c0ffee".to_owned(), is_dirty: false };
        let mut source =
            ProvenanceFacts { repository: None, commit: Some(commit), workflow: Some(workflow) };
        let statement = source.provenance();
        let definition = &statement.predicate["buildDefinition"];
        let url = "https://github.com/acme/csv";
        assert_eq!(definition["externalParameters"], json!({"source": url, "ref": "refs/tags/v1"}));
        assert_eq!(definition["resolvedDependencies"][0]["uri"], format!("git+{url}"));
        assert_eq!(definition["internalParameters"]["runnerEnvironment"], "github-hosted");
        let summary = statement.summary();
        let builder = format!("{url}/.github/workflows/release.yml@refs/tags/v1");
        assert_eq!(summary.builder, Some(builder));
        assert_eq!(summary.commit.as_deref(), Some("c0ffee"));
        assert!(!summary.is_dirty);
        source.repository = Some("https://git.example/csv".to_owned());
        let named = source.provenance().predicate;
        let uri = &named["buildDefinition"]["resolvedDependencies"][0]["uri"];
        assert_eq!(uri, "git+https://git.example/csv");
    }
}
