//! Slots under a limit on concurrency, as one document holds them: who has how many, and since when.
//!
//! A book is changed by conditional writes only, so it never holds more than its limit. Who has ended is found by looking, whenever
//! the book is full: nobody has to say goodbye, and a holder that crashed gives back what it had.

use std::collections::BTreeMap;

/// How long a holder that cannot be found counts, in milliseconds of the store's time: it may be about to be made.
pub const ABOUT_TO_BE_MADE: u64 = 60_000;

/// The slots under one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    /// Who holds slots.
    pub holders: BTreeMap<String, Holding>,
    /// How many slots were borrowed from the book above it. Of a book that borrows from none: 0.
    pub borrowed: u32,
    /// When a slot was last given, in the store's time: rises with each.
    pub last: u64,
}

/// What one holder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// How many slots.
    pub slots: u32,
    /// Since when, in the store's time.
    pub since: u64,
}

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// It is at work.
    Alive,
    /// It has ended.
    Ended,
    /// There is none of this name.
    Missing,
}

impl Book {
    /// Slots that are held.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.holders.values().map(|holding| holding.slots).fold(0, u32::saturating_add)
    }

    /// Gives `holder` `slots` slots in place of what it has, if no more than `limit` are held then. False: they would be.
    #[must_use]
    pub fn give(&mut self, holder: &str, slots: u32, limit: u32, now: u64) -> bool {
        let has = self.holders.get(holder).map_or(0, |holding| holding.slots);
        if (self.held() - has).saturating_add(slots) > limit {
            return false;
        }
        self.last = now.max(self.last + 1);
        let since = self.holders.get(holder).map_or(self.last, |holding| holding.since);
        self.holders.insert(holder.to_owned(), Holding { slots, since });
        true
    }

    /// Takes back what this holder has. False: it has nothing.
    pub fn take_back(&mut self, holder: &str) -> bool {
        self.holders.remove(holder).is_some()
    }

    /// Takes back what those hold that have ended, or that nobody made in time. How many slots that were.
    pub fn collect(&mut self, now: u64, known: impl Fn(&str) -> Holder) -> u32 {
        let before = self.held();
        self.holders.retain(|name, holding| match known(name) {
            Holder::Alive => true,
            Holder::Ended => false,
            Holder::Missing => now.saturating_sub(holding.since) < ABOUT_TO_BE_MADE,
        });
        before - self.held()
    }
}

/// How many slots a book borrows at once: half of what it may ever hold, so that a short queue holds few and a busy one asks seldom.
#[must_use]
pub fn block(limit: u32) -> u32 {
    limit.div_ceil(2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_never_holds_more_than_its_limit_and_tells_the_time_strictly_rising() {
        let mut book = Book::default();
        assert!(book.give("a", 1, 2, 100));
        assert!(book.give("b", 1, 2, 100));
        assert_eq!(book.last, 101, "the second came after the first, though the clock stood still");
        assert!(!book.give("c", 1, 2, 200));
        assert_eq!((book.held(), book.last), (2, 101), "a refusal leaves nothing");
        assert!(book.give("a", 1, 2, 50), "who has its slot is given it again");
        assert!(!book.give("a", 2, 2, 300), "but no more");
        assert!(book.take_back("b") && !book.take_back("b"));
        assert!(book.give("a", 2, 2, 300));
        assert_eq!(book.holders["a"], Holding { slots: 2, since: 100 });
    }

    #[test]
    fn who_has_ended_gives_back_and_who_is_about_to_be_made_does_not() {
        let mut book = Book::default();
        for (holder, at) in [("alive", 0), ("ended", 0), ("lost", 0), ("coming", 50_000)] {
            assert!(book.give(holder, 1, 4, at));
        }
        let known = |name: &str| match name {
            "alive" => Holder::Alive,
            "ended" => Holder::Ended,
            _ => Holder::Missing,
        };
        assert_eq!(book.collect(70_000, known), 2);
        assert_eq!(book.holders.keys().collect::<Vec<_>>(), ["alive", "coming"]);
    }

    #[test]
    fn a_block_is_half_of_the_limit_and_never_nothing() {
        assert_eq!([1, 2, 15, 0].map(block), [1, 1, 8, 1]);
    }
}
