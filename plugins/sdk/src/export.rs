//! The one macro.

/// Exports a plugin: `firesteel_plugin::export!(plugin);` with a function that returns a [`Plugin`](crate::Plugin).
///
/// Natively it does nothing, so that the same crate has tests.
#[macro_export]
macro_rules! export {
    ($plugin:path) => {
        const _: fn() -> $crate::Plugin = $plugin;
        #[cfg(target_family = "wasm")]
        mod firesteel_plugin_export {
            use super::*;
            pub struct Source;
            impl $crate::guest::Source for Source {
                fn with<R>(ask: impl FnOnce(&$crate::Plugin) -> R) -> R {
                    ::std::thread_local! {
                        static PLUGIN: $crate::Plugin = $plugin();
                    }
                    PLUGIN.with(ask)
                }
            }
            type Exported = $crate::guest::Exported<Source>;
            $crate::guest::bindings::export_plugin!(Exported with_types_in $crate::guest::bindings);
        }
    };
}
