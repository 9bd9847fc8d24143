//! What a plugin may try: each time the call fails with the limit's name, and the next call of the same machine is answered at once.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod calls;
mod desk;
mod guests;
mod kept;
mod loading;
