"""Those who submit the statements and cancel some: the same in a run with faults and in one without."""

import time

from benchmarks import stores

# So many statements of a session wait or run at once.
WINDOW = 6


class Users:
    """Submits each session's statements in order, never more than WINDOW of them before the first of those has ended."""

    def __init__(self, store, scripts, races):
        """`races`: cancel also what may have ended by then."""
        self.store, self.scripts, self.races = store, scripts, races
        self.ids = {}
        self.left = {session: list(enumerate(script)) for session, script in scripts.items()}
        self.open = {session: [] for session in scripts}
        self.states, self.submitted = {}, {}
        self.began = int(time.time() * 1000)

    @property
    def total(self):
        return sum(len(script) for script in self.scripts.values())

    @property
    def ended(self):
        return sum(state in stores.TERMINAL for state in self.states.values())

    def running(self, session):
        """The ids of the session's statements that run, as they were last looked at."""
        return [key for key in self.open[session] if self.states.get(key) == "running"]

    def step(self, most, wanted=None):
        """Submits what may be submitted, of `most` in all or so, but some in the session that is `wanted`; looks; cancels what is to be cancelled."""
        for session, left in self.left.items():
            documents = []
            while left and len(self.open[session]) < WINDOW and (len(self.submitted) < most or (session == wanted and len(self.open[session]) < 2)):
                n, statement = left.pop(0)
                document = stores.statement(session, statement.query)
                key = f"{session}/{n}"
                # The same in each run, so that runs can be compared; one millisecond apart, so that the order is theirs.
                document.update(statementId=key, queryId=f"q-{key}", submitTime=self.began + n)
                documents.append(document)
                self.ids[key], self.submitted[key] = statement, time.monotonic()
                self.open[session].append(key)
            if documents:
                self.store.insert(documents)
        keys = [key for open_here in self.open.values() for key in open_here]
        if not keys:
            return
        self.states.update({key: state for key, state in self.store.states(keys).items() if state})
        for session, open_here in self.open.items():
            for key in open_here:
                self.maybe_cancel(key)
            self.open[session] = [key for key in open_here if self.states.get(key) not in stores.TERMINAL]

    def maybe_cancel(self, key):
        cancel, state = self.ids[key].cancel, self.states.get(key)
        if cancel is None or state in stores.TERMINAL:
            return
        if isinstance(cancel, float):
            due = self.races and time.monotonic() - self.submitted[key] >= cancel
        else:
            due = cancel == "at once" or state == "running"
        if due:
            self.store.cancel(key)

    @property
    def done(self):
        return self.ended == self.total


def scripts(seed, sessions, number, session):
    """Statements for each session, `number` in all."""
    each = [number // len(sessions) + (n < number % len(sessions)) for n in range(len(sessions))]
    return {name: session(seed, name, count) for name, count in zip(sessions, each)}

