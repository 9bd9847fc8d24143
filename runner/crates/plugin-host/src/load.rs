//! From a component to a plugin that can be called: what it imports, exports and says of itself is checked, once.

use std::sync::{Arc, Mutex};

use arrow_schema::DataType;
use firesteel_session::ports::plugins::{About, Fault, Function, FunctionKind, Surroundings, Volatility, Wrong};
use wasmtime::component::{Component, HasSelf, Linker};

use crate::bindings::Plugin as World;
use crate::bindings::exports::firesteel::plugin::manifest;
use crate::grants::{Asks, Grants, Mode};
use crate::guest::{Budget, Facts, Guest};
use crate::instance::Indices;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::plugin::{Loaded, shortened};
use crate::tables;

/// The interface that this program knows, major and minor: those of the same minor are one.
const KNOWN: (u64, u64) = (0, 1);
const KNOWN_TEXT: &str = "0.1.0";
const PACKAGE: &str = "firesteel:plugin/";

/// Why a component is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is no plugin that this program can run.
    #[error("{0}")]
    Unfit(String),
    /// It asks for more than the operator grants.
    #[error("plugin {plugin} asks for what is not granted: {}; who trusts it adds that to its `grants`", missing.join(", "))]
    Refused {
        /// Its name and version.
        plugin: String,
        /// What would have to be granted.
        missing: Vec<String>,
    },
    /// It failed when it was asked what it is.
    #[error("{0}")]
    Failed(Fault),
}

/// What a plugin is given when it is loaded.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What the operator configured.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What the operator grants.
    pub grants: Grants,
    /// What limits it.
    pub limits: Limits,
}

/// What a component is, as far as can be known without a configuration.
pub struct Description {
    /// What it says of itself.
    pub about: About,
    /// What it asks for.
    pub asks: Asks,
}

impl Loaded {
    /// Loads a component. `name`: what it is called until it has said its own name.
    ///
    /// # Errors
    /// It is no plugin, it asks for more than is granted, or it fails.
    pub fn load(
        machine: &Arc<Machine>,
        component: &Component,
        name: &str,
        given: Given,
        around: &Arc<dyn Surroundings>,
    ) -> Result<Loaded, LoadError> {
        let (mut loaded, asks) = Loaded::unchecked(machine, component, name, given, around)?;
        let missing = loaded.grants.missing(&asks);
        if !missing.is_empty() {
            return Err(LoadError::Refused { plugin: loaded.about.label(), missing });
        }
        // What is granted and not asked for is not given.
        loaded.grants.directories.retain(|name, _| asks.directories.iter().any(|(asked, _)| asked == name));
        for (name, mode) in &asks.directories {
            if let Some(granted) = loaded.grants.directories.get_mut(name) {
                granted.mode = granted.mode.min(*mode);
            }
        }
        loaded.idle = Mutex::default();
        Ok(loaded)
    }

    /// Asks a component what it is, without granting it anything.
    ///
    /// # Errors
    /// It is no plugin, or it fails.
    pub fn describe(
        machine: &Arc<Machine>,
        component: &Component,
        name: &str,
        given: Given,
        around: &Arc<dyn Surroundings>,
    ) -> Result<Description, LoadError> {
        let given = Given { grants: Grants::default(), ..given };
        let (loaded, asks) = Loaded::unchecked(machine, component, name, given, around)?;
        Ok(Description { about: loaded.about, asks })
    }

    fn unchecked(
        machine: &Arc<Machine>,
        component: &Component,
        name: &str,
        given: Given,
        around: &Arc<dyn Surroundings>,
    ) -> Result<(Loaded, Asks), LoadError> {
        let unfit = |why: String| LoadError::Unfit(format!("{name}: {why}"));
        let wasi = fits(machine, component).map_err(unfit)?;
        let pre = linker(machine, wasi)
            .and_then(|linker| linker.instantiate_pre(component))
            .map_err(|e| unfit(format!("it cannot be linked: {}", e.root_cause())))?;
        let indices = Indices::of(&pre).map_err(|e| unfit(format!("its manifest is not as it should be: {e}")))?;
        let facts = |name: &str, label: String, given: &Given| {
            Arc::new(Facts { name: name.to_owned(), label, config: given.config.clone(), limits: given.limits.clone() })
        };
        let mut loaded = Loaded {
            machine: Arc::clone(machine),
            facts: facts(name, name.to_owned(), &given),
            // What it may do is not known before it has said what it asks for.
            grants: Grants::default(),
            about: About::default(),
            pre,
            indices,
            wasi,
            idle: Mutex::default(),
        };
        let (described,) = loaded
            .call(around, |instance, exports| {
                instance.call(around, Budget::Short, &exports.manifest.func_describe(), ())
            })
            .map_err(LoadError::Failed)?;
        let described =
            described.map_err(|message| LoadError::Failed(loaded.fault(Wrong::Told(shortened(message), None))))?;
        let asks = asks(&described).map_err(unfit)?;
        let about = about(described, &given.limits).map_err(unfit)?;
        exported(&loaded, &about).map_err(unfit)?;
        loaded.facts = facts(&about.name, about.label(), &given);
        loaded.about = about;
        loaded.grants = given.grants;
        Ok((loaded, asks))
    }
}

/// Whether a component was made for this interface. True: it wants WASI.
fn fits(machine: &Machine, component: &Component) -> Result<bool, String> {
    let own = component.component_type();
    let mut wasi = false;
    let imports: Vec<String> = own.imports(machine.engine()).map(|(name, _)| name.to_owned()).collect();
    let exports: Vec<String> = own.exports(machine.engine()).map(|(name, _)| name.to_owned()).collect();
    for name in imports.iter().chain(&exports).filter_map(|name| name.strip_prefix(PACKAGE)) {
        let version = name.split_once('@').map_or("", |(_, version)| version);
        let mut numbers = version.split('.').map(|n| n.parse::<u64>().unwrap_or(u64::MAX));
        let built = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if built != KNOWN {
            let how = if built > KNOWN { "use a newer Firesteel, or build" } else { "build" };
            return Err(format!(
                "it was built for version {version} of the interface, this program has {KNOWN_TEXT}: {how} it with the SDK for {KNOWN_TEXT}"
            ));
        }
    }
    if !exports.iter().any(|name| name.starts_with("firesteel:plugin/manifest@")) {
        return Err("it does not export `firesteel:plugin/manifest`, so it is a component but no plugin".into());
    }
    for name in &imports {
        if name.starts_with("wasi:") {
            wasi = true;
        } else if !name.starts_with(PACKAGE) {
            return Err(format!("it imports `{name}`, which no plugin is given"));
        }
    }
    Ok(wasi)
}

fn linker(machine: &Machine, wasi: bool) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(machine.engine());
    World::add_to_linker::<_, HasSelf<_>>(&mut linker, |guest| guest)?;
    if wasi {
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    }
    Ok(linker)
}

fn asks(described: &manifest::Description) -> Result<Asks, String> {
    let asks = &described.asks;
    if asks.http.len() > 100 || asks.directories.len() > 100 {
        return Err("it asks for more than 100 hosts or folders".into());
    }
    Ok(Asks {
        http: asks.http.iter().map(|host| shortened(host.clone())).collect(),
        directories: asks
            .directories
            .iter()
            .map(|d| {
                let mode = match d.mode {
                    manifest::Mode::Read => Mode::Read,
                    manifest::Mode::Write => Mode::Write,
                };
                (shortened(d.name.clone()), mode)
            })
            .collect(),
        writes: asks.writes,
    })
}

/// A word of lower-case letters, digits and one more character, which begins with a letter.
fn is_word(text: &str, and: char) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == and)
}

fn about(described: manifest::Description, limits: &Limits) -> Result<About, String> {
    let name = described.name;
    if !is_word(&name, '-') {
        let shown: String = name.chars().take(63).collect();
        return Err(format!(
            "its name is `{shown}`; a name has lower-case letters, digits and `-`, at most 63, and begins with a letter"
        ));
    }
    let version = described.version;
    let numbers =
        version.split(['-', '+']).next().unwrap_or("").split('.').filter(|n| n.parse::<u64>().is_ok()).count();
    if version.len() > 63 || numbers != 3 {
        return Err("its version is not like `1.2.3`".into());
    }
    if described.functions.len() > 1_000 {
        return Err("it has more than 1,000 functions".into());
    }
    let languages: Vec<String> = described.languages.iter().map(|l| l.to_lowercase()).collect();
    if let Some(wrong) = languages.iter().find(|language| !is_word(language, '-')) {
        let shown: String = wrong.chars().take(63).collect();
        return Err(format!("it names the language `{shown}`; such a name has lower-case letters, digits and `-`"));
    }
    let functions = described.functions.into_iter().map(|function| {
        let name: String = function.name.chars().take(63).collect();
        self::function(function, limits).map_err(|why| format!("its function `{name}`: {why}"))
    });
    Ok(About {
        functions: functions.collect::<Result<_, _>>()?,
        name,
        version,
        about: shortened(described.about).lines().next().unwrap_or_default().to_owned(),
        languages,
        policy: described.hooks.contains(manifest::Hooks::POLICY),
        results: described.hooks.contains(manifest::Hooks::RESULTS),
        events: described.hooks.contains(manifest::Hooks::EVENTS),
        writes: described.asks.writes,
    })
}

fn function(function: manifest::Function, limits: &Limits) -> Result<Function, String> {
    if !is_word(&function.name, '_') {
        return Err("a name has lower-case letters, digits and `_`, at most 63, and begins with a letter".into());
    }
    let typed = |text: &str| {
        tables::data_type(text, limits).map_err(|wrong| match wrong {
            Wrong::Limit(name, detail) => format!("limit `{name}`: {detail}"),
            Wrong::Broke(why) => why,
            _ => "a type is wrong".to_owned(),
        })
    };
    if function.parameters.len() > 100 || function.state.len() > 100 {
        return Err("it has more than 100 parameters or columns of state".into());
    }
    if function.variadic && function.parameters.is_empty() {
        return Err("what may be repeated is its last parameter, and it has none".into());
    }
    let kind = match function.kind {
        manifest::Kind::Scalar => FunctionKind::Scalar,
        manifest::Kind::Aggregate => FunctionKind::Aggregate,
        manifest::Kind::Table => FunctionKind::Table,
    };
    let state = function.state.iter().map(|t| typed(t)).collect::<Result<Vec<_>, _>>()?;
    if (kind == FunctionKind::Aggregate) == state.is_empty() {
        return Err("an aggregate function has columns of state, and no other has".into());
    }
    let returns = match kind {
        FunctionKind::Table => DataType::Null,
        _ => typed(&function.returns)?,
    };
    Ok(Function {
        name: function.name,
        kind,
        parameters: function
            .parameters
            .into_iter()
            .map(|p| Ok((shortened(p.name), typed(&p.data_type)?)))
            .collect::<Result<_, String>>()?,
        variadic: function.variadic,
        returns,
        volatility: match function.volatility {
            manifest::Volatility::Immutable => Volatility::Immutable,
            manifest::Volatility::Stable => Volatility::Stable,
            manifest::Volatility::Volatile => Volatility::Volatile,
        },
        strict: function.strict,
        state,
    })
}

/// What it says it does, it must export.
fn exported(loaded: &Loaded, about: &About) -> Result<(), String> {
    let has = &loaded.indices;
    let wanted = [
        ("handler", !about.languages.is_empty(), has.handler.is_some()),
        ("functions", !about.functions.is_empty(), has.functions.is_some()),
        ("policy", about.policy, has.policy.is_some()),
        ("results", about.results, has.results.is_some()),
        ("events", about.events, has.events.is_some()),
    ];
    match wanted.iter().find(|(_, wants, has)| *wants && !has) {
        Some((interface, ..)) => Err(format!(
            "by its description it must export `firesteel:plugin/{interface}@{KNOWN_TEXT}`, and it does not, or with other types"
        )),
        None => Ok(()),
    }
}
