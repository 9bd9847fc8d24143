//! From the core module that a compiler makes to the component that is a plugin: what `firesteel plugin build` does last.

use wit_component::ComponentEncoder;

/// A core module, with the interface that it was built for inside, as a component.
///
/// # Errors
/// It has no interface inside, or does not keep to it.
pub fn component(module: &[u8]) -> Result<Vec<u8>, String> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|mut encoder| encoder.encode());
    encoded.map_err(|e| format!("the module cannot be made a component: {}", e.root_cause()))
}
