//! Creates model clients from `--model` and `[models.NAME]`. Keys are read here, and only the
//! client receives them.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_agent::compaction::{Compaction, ContextWindow, Summarize, TokenEstimate};
use cofferdam_agent::{ChatClient, ChatOptions, ScriptedClient};
use cofferdam_models::{
    PromptCaching, Provider as Interface, ProviderClient, ProviderSettings, RetryObserver,
};
use cofferdam_tool::permission::SecretText;

use cofferdam_code::Language;

use crate::Error;
use crate::config::{ConfigFile, ModelTable, Provider, TimeoutTable};
use crate::granting::{ValueReader, Values};

/// Tokens of the context window of a model that neither the configuration nor a flag describes.
/// Few current models have a smaller one.
const CONTEXT_WINDOW_TOKENS: u64 = 128_000;
/// Tokens of the window that are reserved for a reply, unless its maximum is set.
const REPLY_TOKENS: u64 = 16_000;

/// Maximum number of retries that a configuration may name.
const RETRIES_MAX: u32 = 20;

/// A selected model, before its client is created.
#[derive(Debug, Clone)]
pub struct ModelSpec {
    /// Name of the model in the configuration, if it has one.
    name: Option<String>,
    /// True if no one has chosen the model, so that a prompt file may name another one.
    pub(crate) is_default: bool,
    /// Interface of the provider.
    pub provider: Provider,
    /// Name of the model at the provider; for a script its file.
    pub model: String,
    /// Base URL, if it is not the provider's own.
    pub base_url: Option<String>,
    /// True if the key and the conversation may go over `http:` to another machine.
    plain_http: bool,
    key: Option<SecretText>,
    /// Headers of each request.
    headers: BTreeMap<String, SecretText>,
    caching: PromptCaching,
    /// True if the provider may run programs of the model that call tools.
    hosted_programs: bool,
    /// Maximum number of times that a request is sent again, if the configuration names it.
    retries_max: Option<u32>,
    timeouts: TimeoutTable,
    /// Tokens of the context window, if the configuration names them.
    pub context_window: Option<NonZeroU64>,
    /// Options of replies.
    pub options: ChatOptions,
}

impl std::fmt::Display for ModelSpec {
    /// Writes the model as `--model` takes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.provider.word(), self.model)
    }
}

impl ModelSpec {
    /// Returns the names under which a prompt file can have settings for the model: its name in the
    /// configuration, its name at the provider, and the default.
    pub(crate) fn service_names(&self) -> impl Iterator<Item = &str> {
        self.name.as_deref().into_iter().chain([self.model.as_str(), "default"])
    }

    /// Returns the language of programs that models of the provider write best.
    #[must_use]
    pub fn code_language(&self) -> Language {
        match self.provider {
            Provider::Anthropic => Language::Python,
            _ => Language::JavaScript,
        }
    }

    /// Returns a compaction for conversations with this model. It shortens old results when half of
    /// the context window is used, and lets `client` summarize the older part at four fifths.
    /// `context_window` is in tokens and overrides the configuration.
    pub fn compaction(
        &self,
        context_window: Option<NonZeroU64>,
        client: impl ChatClient + 'static,
    ) -> Compaction {
        let window = context_window.or(self.context_window);
        let window = window.map_or(CONTEXT_WINDOW_TOKENS, NonZeroU64::get);
        let reserved = self.options.max_output_tokens.unwrap_or(REPLY_TOKENS).min(window / 2);
        let strategy = ContextWindow::new(window, reserved).then(Summarize::new(client));
        match self.provider {
            // Its tokenizers make more tokens than the estimate assumes.
            Provider::Anthropic => Compaction::new(strategy).counter(TokenEstimate::percent(130)),
            _ => Compaction::new(strategy),
        }
    }
}

/// Returns the model of `--model` and `--base-url`, or the default model of the configuration.
pub fn choose(
    typed: Option<&str>,
    base_url: Option<&str>,
    file: Option<&ConfigFile>,
) -> crate::Result<ModelSpec> {
    let mut spec = match typed {
        Some(typed) => match typed.split_once(':') {
            Some((provider, model)) => of_flag(typed, provider, model)?,
            None => named(typed, file)?,
        },
        None => ModelSpec { is_default: true, ..of_default(file)? },
    };
    if let Some(base_url) = base_url {
        if spec.provider == Provider::Script {
            return Err(usage("--base-url is for providers; a script is a file"));
        }
        // The operator named the address explicitly, so the provider's key may be sent to it.
        spec.key = spec.key.or_else(|| key_of_environment(spec.provider));
        spec.base_url = Some(base_url.to_owned());
    }
    Ok(spec)
}

/// Creates the client of a model. `retries` receives the retries of its requests.
pub fn client(
    spec: &ModelSpec,
    retries: Option<RetryObserver>,
) -> crate::Result<Arc<dyn ChatClient>> {
    let interface = match spec.provider {
        Provider::OpenAi => Interface::OpenAiChat,
        Provider::Responses => Interface::OpenAiResponses,
        Provider::Anthropic => Interface::Anthropic,
        Provider::Script => return Ok(Arc::new(open_script(&spec.model)?)),
    };
    if spec.key.is_none() && spec.base_url.is_none() && spec.headers.is_empty() {
        let (key, _) = variables(spec.provider);
        let word = spec.provider.word();
        return Err(usage(format!(
            "there is no key for {word}: set {key}, or name one in [models.NAME], such as key = \
             {{ secret = \"{word}\" }}"
        )));
    }
    let mut settings = ProviderSettings::new(interface, &spec.model);
    if let Some(base_url) = &spec.base_url {
        settings = settings.with_base_url(base_url);
    }
    if let Some(key) = &spec.key {
        settings = settings.with_key(key.clone());
    }
    for (name, value) in &spec.headers {
        settings = settings.with_header(name, value).map_err(|error| usage(error.to_string()))?;
    }
    // The operator set these for this model.
    settings.sampling |= spec.options.temperature.is_some() || spec.options.top_p.is_some();
    settings.caching = spec.caching;
    settings.hosted_programs = spec.hosted_programs;
    if let Some(retries_max) = spec.retries_max {
        settings.retries.retries_max = retries_max;
    }
    settings.timeouts = spec.timeouts.over(settings.timeouts);
    settings.allow_plain_http = spec.plain_http;
    settings.retry_observer = retries;
    let client = ProviderClient::new(settings).map_err(|error| usage(error.to_string()))?;
    Ok(Arc::new(client))
}

/// Reads the script at `path`; `-` is standard input.
pub(crate) fn open_script(path: &str) -> crate::Result<ScriptedClient> {
    let read = if path == "-" {
        ScriptedClient::read("standard input", std::io::stdin())
    } else {
        let file = cofferdam_files::open_named_ambient(std::path::Path::new(path))
            .map_err(|error| usage(format!("the script {path} cannot be read: {error}")))?;
        ScriptedClient::read(path, file)
    };
    read.map_err(|error| usage(error.to_string()))
}

/// Returns every model of a configuration. Checks them without reading keys.
pub fn of_config(file: &ConfigFile) -> crate::Result<Vec<(&str, ModelSpec)>> {
    let models = &file.config.models;
    let mut defaults = models.iter().filter(|(_, table)| table.default);
    if let (Some((first, _)), Some((second, table))) = (defaults.next(), defaults.next()) {
        let message = format!("two models are the default, `{first}` and `{second}`");
        return Err(file.error(table.span(), message).into());
    }
    let spec =
        |(name, table)| Ok((String::as_str(name), of_table(file, name, table, Values::Leave)?));
    models.iter().map(spec).collect()
}

fn of_flag(typed: &str, provider: &str, model: &str) -> crate::Result<ModelSpec> {
    let Some(provider) = Provider::ALL.into_iter().find(|known| known.word() == provider) else {
        return Err(usage(format!("`{typed}` names no provider; {FORM}")));
    };
    if model.is_empty() {
        return Err(usage(format!("`{typed}` names no model; {FORM}")));
    }
    Ok(ModelSpec {
        name: None,
        is_default: false,
        provider,
        model: model.to_owned(),
        plain_http: false,
        base_url: base_url_of_environment(provider),
        key: key_of_environment(provider),
        headers: BTreeMap::new(),
        caching: PromptCaching::default(),
        hosted_programs: false,
        retries_max: None,
        timeouts: TimeoutTable::default(),
        context_window: None,
        options: ChatOptions::default(),
    })
}

fn named(name: &str, file: Option<&ConfigFile>) -> crate::Result<ModelSpec> {
    let Some(file) = file else {
        return Err(usage(format!(
            "there is no configuration that defines a model `{name}`; name one with --config FILE, or {FORM}"
        )));
    };
    let Some(table) = file.config.models.get(name) else {
        let known = known(file);
        return Err(usage(format!(
            "there is no model `{name}`; models of the configuration: {known}; {FORM}"
        )));
    };
    of_table(file, name, table, Values::Read)
}

fn of_default(file: Option<&ConfigFile>) -> crate::Result<ModelSpec> {
    let Some(file) = file.filter(|file| !file.config.models.is_empty()) else {
        return Err(usage(format!("no model is named; {FORM}")));
    };
    of_config(file)?;
    let models = &file.config.models;
    let default = models.iter().find(|(_, table)| table.default);
    let only = models.iter().next().filter(|_| models.len() == 1);
    match default.or(only) {
        Some((name, table)) => of_table(file, name, table, Values::Read),
        None => Err(usage(format!(
            "no model is named, and none of the configuration is the default; pass --model NAME: \
             {}",
            known(file)
        ))),
    }
}

fn of_table(
    file: &ConfigFile,
    name: &str,
    table: &ModelTable,
    values: Values,
) -> crate::Result<ModelSpec> {
    let model = table.model.get_ref();
    if model.is_empty() {
        return Err(file.error(table.span(), format!("the model of `{name}` has no name")).into());
    }
    let base_url =
        table.base_url().map_err(|(span, message)| file.error(span, message))?.map(str::to_owned);
    let source = table.key().map_err(|(span, message)| file.error(span, message))?;
    let mut reader = ValueReader::new(file, "models", name, values);
    let key = match source {
        Some(source) => Some(reader.value(&source)?),
        // The provider's key in the environment is sent only to the provider, not to a URL from a
        // file.
        None if base_url.is_none() && values == Values::Read => key_of_environment(table.provider),
        None => None,
    };
    let headers = table.headers().map_err(|(span, message)| file.error(span, message))?;
    let headers = reader.all(&headers)?;
    if let Some(retries) = &table.retries
        && *retries.get_ref() > RETRIES_MAX
    {
        let message = format!("expected at most {RETRIES_MAX} retries");
        return Err(file.error(retries.span(), message).into());
    }
    let runs_programs = matches!(table.provider, Provider::Responses | Provider::Anthropic);
    if table.hosted_programs && !runs_programs {
        let message = "`hosted-programs` needs the provider `responses` or `anthropic`";
        return Err(file.error(table.span(), message.to_owned()).into());
    }
    let is_file = table.provider == Provider::Script;
    Ok(ModelSpec {
        name: Some(name.to_owned()),
        is_default: false,
        provider: table.provider,
        model: if is_file { shown(&file.resolve(Path::new(model))) } else { model.clone() },
        base_url: match values {
            Values::Read => base_url.or_else(|| base_url_of_environment(table.provider)),
            Values::Leave => base_url,
        },
        plain_http: table.plain_http,
        key,
        headers,
        caching: table.caching,
        hosted_programs: table.hosted_programs,
        retries_max: table.retries.as_ref().map(|retries| *retries.get_ref()),
        timeouts: table.timeouts,
        context_window: table.context_window,
        options: ChatOptions {
            strict_schemas: table.strict,
            max_output_tokens: table.max_output_tokens,
            temperature: table.temperature,
            top_p: table.top_p,
            stop: table.stop.clone(),
            seed: table.seed,
            effort: table.effort,
            ..ChatOptions::default()
        },
    })
}

const FORM: &str = "pass --model PROVIDER:MODEL, where PROVIDER is openai, responses, anthropic \
    or script (script:FILE)";

/// Returns the environment variables for key and base URL, as the provider's own tools name them.
fn variables(provider: Provider) -> (&'static str, &'static str) {
    match provider {
        Provider::OpenAi | Provider::Responses => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        Provider::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        Provider::Script => ("", ""),
    }
}

fn key_of_environment(provider: Provider) -> Option<SecretText> {
    variable(variables(provider).0).map(SecretText::new)
}

fn base_url_of_environment(provider: Provider) -> Option<String> {
    variable(variables(provider).1)
}

fn variable(name: &str) -> Option<String> {
    // Some systems do not accept an empty name.
    Some(name)
        .filter(|name| !name.is_empty())
        .and_then(|name| std::env::var(name).ok())
        .filter(|value| !value.is_empty())
}

fn known(file: &ConfigFile) -> String {
    let names: Vec<_> = file.config.models.keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn shown(path: &Path) -> String {
    PathBuf::from(path).display().to_string()
}

fn usage(message: impl Into<String>) -> crate::Error {
    Error::Invalid(message.into())
}
