"""What goes wrong, by seed: which faults and in which order; what they hit hangs on the moment."""

import collections
import os
import random
import signal
import time

from .world import LEASE

KILLS = ("kill owner", "kill stand-by", "kill worker")


def plan(seed, kills, network, restarts):
    """The names of the faults, in their order: `kills` kills, and others beside them."""
    r = random.Random(f"{seed}/faults")
    names = r.choices(KILLS, [55, 10, 35], k=kills)
    names += ["freeze for longer than the lease"] * max(1, kills // 10) + ["freeze for a moment"] * max(1, kills // 10)
    if network:
        names += ["cut off for longer than the lease"] * max(1, kills // 12) + ["cut off for a moment"] * max(1, kills // 8)
        names += ["lose answers"] * max(2, kills // 6) + ["slow answers"] * max(1, kills // 12)
    if restarts:
        names += ["restart of the node"] * max(1, kills // 33)
    r.shuffle(names)
    return names


class Faults:
    """Does one after the other: each when so many statements have ended, and not to a statement that was hit before."""

    def __init__(self, world, users, seed, names, restart):
        self.world, self.users, self.names, self.restart_node = world, users, collections.deque(names), restart
        self.random = random.Random(f"{seed}/moments")
        self.number, self.done = len(names), collections.Counter()
        self.hit, self.later, self.busy = collections.Counter(), [], {}
        self.session, self.not_before = None, 0.0

    def pace(self):
        """How many statements may be submitted now, so that some are left for the faults to come, and the session that is next."""
        if not self.names:
            return self.users.total, None
        gone = self.number - len(self.names)
        return int(0.85 * self.users.total * (gone + 1) / (self.number + 1)), self.session

    def step(self):
        now = time.monotonic()
        for at, act in [l for l in self.later if l[0] <= now]:
            self.later.remove((at, act))
            act()
        if not self.names:
            return
        if self.session is None:
            self.session = self.random.choice(self.world.sessions)
            self.not_before = now + self.random.random() * 0.5
        if now < self.not_before:
            return
        session, name = self.session, self.names[0]
        # What was hit is left to end in peace: a statement is begun three times at most.
        if any(self.hit[key] for key in self.users.open[session]) or now < self.busy.get(session, 0.0):
            return
        if not self.users.open[session]:
            if not self.users.left[session]:
                self.session = None  # another one
            return
        owner = self.world.owner(session)
        if owner is None:
            return
        if name == "restart of the node" and any(self.hit[key] for open_here in self.users.open.values() for key in open_here):
            return
        if getattr(self, name.split(" ")[0])(name, session, owner):
            self.done[name] += 1
            self.names.popleft()
            self.session = None

    def finish(self):
        """What was to be undone later is undone now."""
        for _, act in self.later:
            act()

    def strike(self, session):
        """Notes what may have been hit: what runs, and what may have been claimed since it was looked at."""
        for key in self.users.open[session][:2]:
            self.hit[key] += 1

    def at(self, seconds, act):
        self.later.append((time.monotonic() + seconds, act))

    def kill(self, name, session, owner):
        if name == "kill stand-by":
            others = [p for p in self.world.of(session) if p is not owner and not p.serving_since()]
            if not others:
                return False
            self.random.choice(others).signal(signal.SIGKILL)
            return True
        self.strike(session)
        if name == "kill owner":
            owner.signal(signal.SIGKILL)
            return True
        workers = owner.workers()
        if not workers:
            return False
        try:
            os.kill(self.random.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def freeze(self, name, session, owner):
        seconds = LEASE * (1.5 + 2 * self.random.random()) if "longer" in name else LEASE * 0.6 * self.random.random()
        self.strike(session)
        owner.signal(signal.SIGSTOP)
        self.busy[session] = time.monotonic() + seconds
        self.at(seconds, lambda: owner.signal(signal.SIGCONT))
        return True

    def cut(self, name, session, owner):
        seconds = LEASE * (1.5 + 2 * self.random.random()) if "longer" in name else LEASE * 0.6 * self.random.random()
        self.strike(session)
        owner.proxy.cut(seconds)
        self.busy[session] = time.monotonic() + seconds
        return True

    def lose(self, _, session, owner):
        self.strike(session)
        owner.proxy.lose_answers(self.random.randrange(1, 4))
        return True

    def slow(self, _, session, owner):
        self.strike(session)
        owner.proxy.slow(0.05 + self.random.random() * LEASE)
        self.busy[session] = time.monotonic() + 3
        self.at(3, lambda: owner.proxy.slow(0.0))
        return True

    def restart(self, *_):
        for session in self.world.sessions:
            self.strike(session)
        self.restart_node()
        return True

