//! The state of an aggregate's groups. The plugin keeps none of it: it is given the state of the groups that a batch's rows belong to, and
//! returns it anew, so what a batch costs depends on the batch and not on how many groups there are.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use datafusion::arrow::compute::{concat, filter, interleave};
use datafusion::common::Result;
use firesteel_session::ports::plugins::{Grouped, Surroundings};

use crate::plugins::carried;
use crate::plugins::function::ROWS;
use crate::plugins::overloads::Overloads;

/// So many pieces of state are put together.
const PIECES: usize = 64;

/// Groups and their states.
pub struct Groups {
    of: Overloads,
    function: usize,
    /// Pieces of state, by column. The first is one null, which is where a new group is.
    pieces: Vec<Vec<ArrayRef>>,
    /// Of each group: in which piece, and where there.
    places: Vec<(usize, usize)>,
}

impl Groups {
    /// No groups yet.
    pub fn new(of: Overloads, function: usize) -> Groups {
        let nulls = of.function(function).state.iter().map(|t| new_null_array(t, 1)).collect();
        Groups { of, function, pieces: vec![nulls], places: Vec::new() }
    }

    /// The same function, without groups.
    pub fn anew(&self) -> Groups {
        Groups::new(self.of.clone(), self.function)
    }

    /// How much memory the states take, in bytes.
    pub fn size(&self) -> usize {
        let pieces: usize = self.pieces.iter().flatten().map(|a| a.get_array_memory_size()).sum();
        pieces + self.places.capacity() * size_of::<(usize, usize)>()
    }

    /// Takes rows, or with `merges` the states of other parts, each of its group. Only those that `wanted` has.
    ///
    /// # Errors
    /// The plugin's.
    pub fn take(
        &mut self,
        columns: &[ArrayRef],
        group: &[usize],
        wanted: Option<&BooleanArray>,
        total: usize,
        merges: bool,
    ) -> Result<()> {
        self.places.resize(total.max(self.places.len()), (0, 0));
        let strict = !merges && self.of.function(self.function).strict;
        let mut mask = wanted.cloned();
        for column in columns.iter().filter(|_| strict) {
            if let Some(nulls) = column.logical_nulls().filter(|n| n.null_count() > 0) {
                let valid = BooleanArray::new(nulls.inner().clone(), None);
                mask = Some(match mask {
                    Some(mask) => datafusion::arrow::compute::and_kleene(&mask, &valid)?,
                    None => valid,
                });
            }
        }
        let group: Vec<u32> = group.iter().map(|g| u32::try_from(*g).unwrap_or(u32::MAX)).collect();
        let (columns, group) = match &mask {
            None => (columns.to_vec(), group),
            Some(mask) => {
                let columns = columns.iter().map(|c| filter(c, mask)).collect::<std::result::Result<Vec<_>, _>>()?;
                let group = filter(&UInt32Array::from(group), mask)?;
                let group = group.to_data().buffer::<u32>(0)[..group.len()].to_vec();
                (columns, group)
            }
        };
        for at in (0..group.len()).step_by(ROWS) {
            let count = ROWS.min(group.len() - at);
            let part: Vec<ArrayRef> = columns.iter().map(|c| c.slice(at, count)).collect();
            self.part(&part, &group[at..at + count], merges)?;
        }
        Ok(())
    }

    fn part(&mut self, columns: &[ArrayRef], group: &[u32], merges: bool) -> Result<()> {
        // The groups of these rows, numbered in the order in which they come.
        let mut dense = std::collections::HashMap::new();
        let mut named = Vec::new();
        let group: Vec<u32> = group
            .iter()
            .map(|g| {
                *dense.entry(*g).or_insert_with(|| {
                    named.push(*g as usize);
                    u32::try_from(named.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        let places: Vec<(usize, usize)> = named.iter().map(|g| self.places[*g]).collect();
        let state = self.gather(&places)?;
        let rows =
            Grouped { state: &state, groups: u32::try_from(named.len()).unwrap_or(u32::MAX), group: &group, columns };
        let around: Arc<dyn Surroundings> = self.of.around();
        let new = match merges {
            false => self.of.plugin.accumulate(&around, self.function, rows),
            true => self.of.plugin.merge(&around, self.function, rows),
        };
        self.pieces.push(new.map_err(|fault| carried(&fault))?);
        let piece = self.pieces.len() - 1;
        for (row, g) in named.iter().enumerate() {
            self.places[*g] = (piece, row);
        }
        if self.pieces.len() > PIECES {
            self.compact()?;
        }
        Ok(())
    }

    /// Puts what is in force into one piece.
    fn compact(&mut self) -> Result<()> {
        let whole = self.gather(&self.places)?;
        self.pieces.truncate(1);
        self.pieces.push(whole);
        let mut places = std::mem::take(&mut self.places);
        places.iter_mut().enumerate().for_each(|(row, place)| *place = (1, row));
        self.places = places;
        Ok(())
    }

    fn gather(&self, places: &[(usize, usize)]) -> Result<Vec<ArrayRef>> {
        let columns = self.pieces[0].len();
        (0..columns)
            .map(|column| {
                let pieces: Vec<&dyn Array> = self.pieces.iter().map(|piece| piece[column].as_ref()).collect();
                Ok(interleave(&pieces, places)?)
            })
            .collect()
    }

    fn give_up(&mut self, count: usize) -> Result<Vec<ArrayRef>> {
        let state = self.gather(&self.places[..count])?;
        self.places.drain(..count);
        if self.places.is_empty() {
            self.pieces.truncate(1);
        } else {
            self.compact()?;
        }
        Ok(state)
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The states of the first groups, which are then forgotten.
    ///
    /// # Errors
    /// They cannot be put together.
    pub fn state(&mut self, count: usize) -> Result<Vec<ArrayRef>> {
        self.give_up(count)
    }

    /// The values of the first groups, which are then forgotten.
    ///
    /// # Errors
    /// The plugin's.
    pub fn evaluate(&mut self, count: usize) -> Result<ArrayRef> {
        let state = self.give_up(count)?;
        let around: Arc<dyn Surroundings> = self.of.around();
        let mut parts = Vec::new();
        // Once even for no group, so that the type is right.
        for at in (0..count.max(1)).step_by(ROWS) {
            let groups = ROWS.min(count - at);
            let part: Vec<ArrayRef> = state.iter().map(|column| column.slice(at, groups)).collect();
            let value =
                self.of.plugin.evaluate(&around, self.function, &part, u32::try_from(groups).unwrap_or(u32::MAX));
            parts.push(value.map_err(|fault| carried(&fault))?);
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(concat(&parts)?)
    }
}
