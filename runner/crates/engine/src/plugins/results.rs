//! Result hooks: each sees what the one before it made, batch by batch.

use std::sync::Arc;

use firesteel_model::{Failure, Stage};
use firesteel_session::ports::plugins::Surroundings;
use futures::stream::{self, StreamExt};

use crate::plugins::{Around, Plugins, call, failed};
use crate::query::Running;

/// A result as its hooks let it through.
///
/// # Errors
/// A hook's.
pub async fn hooked(plugins: &Plugins, around: &Arc<Around>, mut running: Running) -> Result<Running, Failure> {
    if running.schema.fields().is_empty() {
        return Ok(running);
    }
    for plugin in plugins.iter().filter(|plugin| plugin.about().results) {
        let (called, schema) = (Arc::clone(plugin), Arc::clone(&running.schema));
        let Some(schema) = call(around, plugin, move |around| called.begin(around, &schema)).await? else { continue };
        around.touched(plugin.about(), "result");
        let surroundings: Arc<dyn Surroundings> = Arc::<Around>::clone(around);
        let (plugin, told) = (Arc::clone(plugin), Arc::clone(&schema));
        let batches = stream::unfold(Some((running.batches, 0)), move |state| {
            let (plugin, told, around) = (Arc::clone(&plugin), Arc::clone(&told), Arc::clone(&surroundings));
            async move {
                let (mut batches, before) = state?;
                let batch = match batches.next().await? {
                    Ok(batch) => batch,
                    Err(failure) => return Some((Err(failure), None)),
                };
                let rows = before + batch.num_rows() as u64;
                match plugin.change(&around, &batch, &told, before) {
                    Ok((changed, last)) => Some((Ok(changed), (!last).then_some((batches, rows)))),
                    Err(fault) => Some((Err(failed(&fault, Stage::Execute)), None)),
                }
            }
        });
        running = Running { schema, batches: batches.boxed(), reads: running.reads };
    }
    Ok(running)
}
