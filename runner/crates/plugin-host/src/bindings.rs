//! The interface as `plugins/wit` has it, in Rust.

#![allow(
    dead_code,
    clippy::allow_attributes_without_reason,
    reason = "what is generated has more ways to call than are used here"
)]

wasmtime::component::bindgen!({
    path: "../../../plugins/wit/0.1.0",
    world: "firesteel:plugin/plugin",
    imports: { default: trappable },
    ownership: Borrowing { duplicate_if_necessary: true },
});
