//! Loading of one plugin: its component is read and described, or taken from the index.

use std::path::Path;
use std::sync::Arc;

use cofferdam_tool::declaration::{Declaration, SerializedTool, check_declarations};
use cofferdam_tool::permission::SerializedPermissions;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::{Limits, PluginName, ToolDefinition};

use super::{Facts, Plugin, PluginInfo, PluginOptions, PluginParts, ScreenedPlugin, digest_text};
use crate::load::index::{ComponentFiles, ComponentRecord};
use crate::load::{ComponentDescription, ComponentLoad, Description, ReadComponent};
use crate::{Component, Engine, Grants, LoadError, LoadObserver};

impl Engine {
    /// Loads a component as a plugin: reads it, and, unless it is in the cache, screens it,
    /// compiles it and asks it for its tools. A host with many plugins loads them with
    /// [`Engine::load_all`].
    ///
    /// # Errors
    /// [`LoadError`] with the reason why the component is rejected, in one line, for the operator.
    pub async fn load(
        &self,
        component: &Component,
        options: PluginOptions,
        observer: &dyn LoadObserver,
    ) -> Result<Plugin, LoadError> {
        let loaded = LoadedComponent::load(self, component, &options, observer).await?;
        Plugin::new(self, component, options, loaded.into_parts())
    }

    /// Asks a component for its declarations without checking them, so that its author learns about
    /// all problems at once.
    ///
    /// # Errors
    /// Those of [`Engine::load`], except those that concern declarations.
    pub async fn examine(
        &self,
        component: &Component,
        name: &PluginName,
        observer: &dyn LoadObserver,
    ) -> Result<(PluginInfo, Vec<Declaration>), LoadError> {
        let (limits, grants) = (Limits::default(), Grants::default());
        let read = ReadComponent::read(&self.inner, component).await?;
        let manifest = read.manifest(component).await?;
        let loading = ComponentLoad::start(&self.inner, read, name, &limits, &grants, observer)?;
        let Description { component_bytes, imports, declarations } =
            loading.describe(&manifest).await?.description;
        let identity =
            PluginIdentity { name: name.clone(), digest: digest_text(&loading.digest()).into() };
        Ok((PluginInfo::new(identity, component_bytes, imports), declarations))
    }

    /// Reads and screens a component without running any of it. Also works for one that fails to
    /// list its tools.
    ///
    /// # Errors
    /// Those of [`Engine::load`] that occur before the component is compiled.
    pub async fn screened(
        &self,
        component: &Component,
        name: &PluginName,
    ) -> Result<ScreenedPlugin, LoadError> {
        let (limits, grants) = (Limits::default(), Grants::default());
        let read = ReadComponent::read(&self.inner, component).await?;
        let loading = ComponentLoad::start(&self.inner, read, name, &limits, &grants, &())?;
        let (component_bytes, screened) = loading.screened().await?;
        let identity =
            PluginIdentity { name: name.clone(), digest: digest_text(&loading.digest()).into() };
        let info = PluginInfo::new(identity, component_bytes, screened.imports);
        Ok(ScreenedPlugin { info, exports: screened.exports })
    }

    /// Rejects mounts that overlap files of the engine. The cache contains the key that
    /// authenticates its entries: a guest that could read and write it could run native code. The
    /// spill directory contains changes of other calls.
    pub(super) fn check_mounts(&self, grants: &Grants) -> Result<(), LoadError> {
        let spill = self.inner.config.spill.as_ref().map(|spill| spill.directory_ambient.as_path());
        for ours in self.cache_directory().into_iter().chain(spill) {
            let overlaps = |root: &Path| root.starts_with(ours) || ours.starts_with(root);
            let exposed =
                grants.mounts.iter().find(|mount| mount.store.root_ambient().is_some_and(overlaps));
            if let Some(mount) = exposed {
                let (mount, cache) = (mount.name.to_string(), ours.to_owned());
                return Err(LoadError::MountExposesCache { mount, cache });
            }
        }
        Ok(())
    }
}

/// Component that was read and described, with accepted definitions.
pub(super) struct LoadedComponent {
    described: ComponentDescription,
    definitions: Vec<ToolDefinition>,
    digest: [u8; 32],
    /// True if the options have an instruction budget.
    is_counting: bool,
}

impl LoadedComponent {
    /// Reads a component for a plugin with `options`.
    pub(super) async fn load(
        engine: &Engine,
        component: &Component,
        options: &PluginOptions,
        observer: &dyn LoadObserver,
    ) -> Result<Self, LoadError> {
        let PluginOptions { name, grants, limits, .. } = options;
        engine.check_mounts(grants)?;
        let read = ReadComponent::read(&engine.inner, component).await?;
        let manifest = read.manifest(component).await?;
        // A budget that the plugin itself requests requires code that counts.
        let granted = manifest.requested().granted_of(&grants.policy(limits)).policy.limits;
        let loading = ComponentLoad::start(&engine.inner, read, name, &granted, grants, observer)?;
        let described = loading.describe(&manifest).await?;
        let definitions = check_declarations(&described.description.declarations)?;
        let is_counting = limits.fuel_max.is_some();
        Ok(Self { described, definitions, digest: loading.digest(), is_counting })
    }

    /// Returns the record of the component for the index, with the versions of its `files`. Returns
    /// `None` if it cannot be recorded.
    pub(super) fn record(&self, files: ComponentFiles) -> Option<ComponentRecord> {
        let ComponentDescription { description, asked, icons, commands, .. } = &self.described;
        let tools = description.declarations.iter().zip(&self.definitions);
        Some(ComponentRecord {
            files,
            is_counting: self.is_counting,
            digest: self.digest,
            component_bytes: description.component_bytes,
            imports: description.imports.join("\n"),
            asked: SerializedPermissions::new(asked)?,
            icons: icons.clone(),
            commands: commands.clone(),
            tools: tools
                .map(|(declaration, tool)| SerializedTool::new(declaration, tool))
                .collect(),
        })
    }

    /// Drops the code, which is in the cache.
    pub(super) fn drop_code(&mut self) {
        self.described.code = None;
    }

    /// Returns the parts of the plugin.
    pub(super) fn into_parts(self) -> PluginParts {
        let ComponentDescription { description, asked, icons, commands, code } = self.described;
        let Description { component_bytes, imports, .. } = description;
        let facts = Facts { component_bytes, imports: imports.join("\n") };
        let definitions = self.definitions.into_iter().map(Arc::new).collect();
        PluginParts { digest: self.digest, facts, definitions, asked, icons, commands, code }
    }
}

impl PluginParts {
    /// Creates the parts from a record of the index. Returns `None` if the record is no longer
    /// valid; the component is then loaded.
    pub(super) fn from_record(record: ComponentRecord) -> Option<Self> {
        let tools = record.tools.into_iter().map(|tool| tool.into_definition().map(Arc::new));
        Some(Self {
            digest: record.digest,
            facts: Facts { component_bytes: record.component_bytes, imports: record.imports },
            definitions: tools.collect::<Option<_>>()?,
            asked: record.asked.to_requested()?,
            icons: record.icons,
            commands: record.commands,
            code: None,
        })
    }
}
