//! Many plugins at one start: those that are known are made of what is known, the others are loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_tool::{DECLARATION_RULES, KeptAsked, KeptTool, check_declarations};

use super::{Facts, Parts, Plugin, PluginOptions};
use crate::load::index::{ComponentFiles, FileIdentity, Known, Record};
use crate::load::{CACHE_FORMAT, Described, Description, Loading};
use crate::{Compiler, Component, Engine, LoadError, LoadObserver};

/// Plugins of one start whose code stays in memory when it had to be compiled. Of more than that most are not called for a
/// while, and the cache has their code.
const CODE_KEPT_MAX: usize = 16;

impl Engine {
    /// What the cache knows about the components at `paths`, relative ones in `directory`: for [`Engine::recall`]. Takes a
    /// few milliseconds for a thousand of them, and blocks.
    #[must_use]
    pub fn known(&self, directory: &Path, paths: &[PathBuf]) -> Known {
        let Some(cache) = &self.inner.cache else { return Known::nothing() };
        // The program that compiles is this one, with its rules for declarations and manifests.
        let program = match &self.inner.config.compiler {
            Compiler::Child { program, .. } => FileIdentity::of_ambient(program),
            _ => None,
        };
        let program = program.map(|program| program.to_bytes()).unwrap_or_default();
        let rules = DECLARATION_RULES.to_le_bytes();
        let made_by = [
            CACHE_FORMAT,
            &self.inner.fingerprint(),
            &rules,
            env!("CARGO_PKG_VERSION").as_bytes(),
            &program,
            directory.as_os_str().as_encoded_bytes(),
        ];
        Known::read(cache, &made_by, paths)
    }

    /// The plugin that is known at `place`, if the files are the ones that are known: nothing is read then. They have been
    /// looked at, and are not looked at here.
    ///
    /// # Errors
    /// Those of [`Engine::load`] that are about what the plugin is given.
    pub fn recall(
        &self,
        known: &Known,
        place: usize,
        component: &Component,
        files: Option<ComponentFiles>,
        options: &PluginOptions,
    ) -> Result<Option<Plugin>, LoadError> {
        let is_counting = options.limits.fuel_max.is_some();
        let is_same = |record: &Record| Some(record.files) == files && record.is_counting == is_counting;
        if component.file_ambient().is_none() {
            return Ok(None);
        }
        let Some(parts) = known.record(place).filter(is_same).and_then(recalled) else { return Ok(None) };
        self.check_mounts(&options.grants)?;
        known.keep_same(place);
        Plugin::new(self, component, options.clone(), parts).map(Some)
    }

    /// Loads a component as a plugin like [`Engine::load`]. It is known from then on, if its files are still as they were looked
    /// at.
    ///
    /// # Errors
    /// Those of [`Engine::load`].
    pub async fn load_known(
        &self,
        known: &Known,
        place: usize,
        component: &Component,
        files: Option<ComponentFiles>,
        options: PluginOptions,
        observer: &dyn LoadObserver,
    ) -> Result<Plugin, LoadError> {
        self.check_mounts(&options.grants)?;
        // What is changed while it is read must show.
        let files = files.filter(|files| known.is_kept() && files.are_settled());
        let PluginOptions { name, grants, limits, .. } = &options;
        let mut loading = Loading::start(&self.inner, component, name, limits, grants, observer).await?;
        let mut described = loading.describe().await?;
        let granted = described.asked.granted_of(&grants.policy(limits));
        // A budget that the plugin sets itself needs code that counts.
        if granted.policy.limits.fuel_max.is_some() && limits.fuel_max.is_none() {
            let limits = &granted.policy.limits;
            loading = Loading::start(&self.inner, component, name, limits, grants, observer).await?;
            described = loading.describe().await?;
        }
        let Described { description, asked, icons, mut code } = described;
        let Description { component_bytes, imports, declarations } = description;
        let definitions = check_declarations(&declarations)?;
        let imports = imports.join("\n");
        let now = component.file_ambient().and_then(ComponentFiles::look_ambient);
        if let Some(files) = files.filter(|files| now == Some(*files))
            && let Some(kept) = KeptAsked::new(&asked)
        {
            let tools = declarations.iter().zip(&definitions);
            let record = Record {
                files,
                is_counting: limits.fuel_max.is_some(),
                digest: loading.digest,
                component_bytes,
                imports: imports.clone(),
                asked: kept,
                icons: icons.clone(),
                tools: tools.map(|(declaration, tool)| KeptTool::new(declaration, tool)).collect(),
            };
            known.keep(place, &record);
        }
        if self.inner.cache.is_some() && known.places() > CODE_KEPT_MAX {
            code = None;
        }
        let facts = Facts { component_bytes, imports };
        let definitions = definitions.into_iter().map(Arc::new).collect();
        let parts = Parts { digest: loading.digest, facts, definitions, asked, icons, code };
        Plugin::new(self, component, options, parts)
    }
}

/// A plugin as it is known. `None` if it has to be loaded: what was accepted once is accepted again, so that does not happen.
fn recalled(record: Record) -> Option<Parts> {
    let tools = record.tools.into_iter().map(|tool| tool.into_definition().map(Arc::new));
    Some(Parts {
        digest: record.digest,
        facts: Facts { component_bytes: record.component_bytes, imports: record.imports },
        definitions: tools.collect::<Option<_>>()?,
        asked: record.asked.to_asked()?,
        icons: record.icons,
        code: None,
    })
}
