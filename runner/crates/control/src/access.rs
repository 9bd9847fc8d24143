//! Who asks, and what they may see and do.

use crate::refusal::Refusal;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sees and does everything with what is their own, and nothing with what is others'.
    Owner,
    /// Sees everything, changes nothing.
    Viewer,
    /// Sees and does everything.
    Admin,
}

impl Role {
    /// The role of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Role> {
        match name {
            "owner" => Some(Role::Owner),
            "viewer" => Some(Role::Viewer),
            "admin" => Some(Role::Admin),
            _ => None,
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name; empty where nobody has one.
    pub user: String,
    /// What they may do.
    pub role: Role,
}

impl Caller {
    /// The one that there is where nobody has to say who they are.
    #[must_use]
    pub fn anybody() -> Caller {
        Caller { user: String::new(), role: Role::Admin }
    }

    /// Whether they may see what belongs to `user`.
    #[must_use]
    pub fn sees(&self, user: &str) -> bool {
        self.role != Role::Owner || self.user == user
    }

    /// That they may change something of their own.
    ///
    /// # Errors
    /// They may only look.
    pub fn may_change(&self) -> Result<(), Refusal> {
        if self.role == Role::Viewer {
            return Err(Refusal::Forbidden("a viewer changes nothing; ask as an owner or an admin".to_owned()));
        }
        Ok(())
    }

    /// The user whose things alone a listing shows; None: everybody's.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        (self.role == Role::Owner).then_some(self.user.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_sees_their_own_a_viewer_everything_and_only_a_viewer_changes_nothing() {
        let caller = |role| Caller { user: "ann".to_owned(), role };
        for (role, own, others, changes) in
            [(Role::Owner, true, false, true), (Role::Viewer, true, true, false), (Role::Admin, true, true, true)]
        {
            let caller = caller(role);
            let seen = (caller.sees("ann"), caller.sees("bob"), caller.may_change().is_ok());
            assert_eq!(seen, (own, others, changes), "{role:?}");
        }
        assert_eq!(caller(Role::Owner).only(), Some("ann"));
        assert_eq!(caller(Role::Viewer).only(), None);
    }
}
