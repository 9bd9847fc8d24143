"""Kills, freezes and cuts off runners at work, then compares every document with those of a run that nobody disturbed.

    scripts/chaos kill                              100 kills, 1,300 statements, on the OpenSearch of scripts/opensearch
    scripts/chaos kill --kills 8 --statements 60    a short one
    scripts/chaos kill --store sqlite               on a SQLite file: nothing lies between it and the runners, so they are only killed and frozen
    scripts/chaos kill --seed 7                     the statements and faults of seed 7; what a fault hits hangs on the moment

Each session is served by a runner with stand-bys, each with a proxy of its own before the store; leases are one second long. The faults, at
random by seed: kill -9 of the owner, of a stand-by, of a worker; SIGSTOP and SIGCONT; connections cut, answers lost or late; the node killed
and started again. Afterwards reads and defines must have ended as in the undisturbed run, rows, schemas and pages included; a write in success
with its effect once, or as interrupted with its effect at most once; what was cancelled without a result; and nothing staged may be left.
Prints what happened; with a difference it ends with 1, lists the differences, and keeps the logs in a folder that it names.
Python 3.8 or later, standard library only.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
from chaos_kill import faults, statements, verdict
from chaos_kill.users import Users, scripts
from chaos_kill.world import LEASE, OpenSearch, Sqlite, World

# Nothing ended for so many seconds: the run is stuck.
STUCK = 120
# Between two lines about how far it is, in seconds.
TELL_EVERY = 15
# After the last statement has ended, remains may be swept for so many seconds.
SETTLE = 60
OPTIONS = ["--lease", f"{int(LEASE * 1000)}ms", "--heartbeat", "300ms", "--first-heartbeat", "100ms", "--watch", "100ms", "--poll-idle", "200ms", "--retry-max", "300ms",
           "--unreachable", "2min", "--sweep", "3s", "--sweep-every", "1s", "--document-bytes", "200KB", "--large-results", "pages", "--threads", "2",
           "--log", "firesteel_session=debug,info"]


def program(build):
    if build:
        subprocess.run(["cargo", "build", "--release", "--locked", "--workspace", "--exclude", "firesteel-tests-light", "--bins"], cwd=SCRIPTS.parent, check=True)
    return (pathlib.Path(os.environ.get("CARGO_TARGET_DIR", SCRIPTS.parent / "target")) / "release" / "firesteel").resolve()


class Node:
    """The server of scripts/opensearch: its own one, which may be restarted, or another's at $OPENSEARCH_URL."""

    def __init__(self, folder):
        self.ours = "OPENSEARCH_URL" not in os.environ
        os.environ.setdefault("FIRESTEEL_OPENSEARCH_RUN", str(folder / "opensearch"))
        self.url = self.run("start")

    def run(self, verb):
        done = subprocess.run([str(SCRIPTS / "opensearch"), verb], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit(f"scripts/opensearch {verb} failed; --store sqlite needs none")
        return done.stdout.strip().partition("=")[2]


def play(world, users, chaos=None):
    """Until every statement has ended."""
    world.open()
    last = users.ended
    moved = told = time.monotonic()
    while not users.done:
        users.step(*chaos.pace() if chaos else (users.total,))
        if chaos:
            chaos.step()
            world.replace_the_dead()
        if users.ended > last:
            last, moved = users.ended, time.monotonic()
        if time.monotonic() - told > TELL_EVERY:
            told = time.monotonic()
            faults_left = f", {len(chaos.names)} of {chaos.number} faults to come" if chaos else ", undisturbed"
            print(f"{users.ended} of {users.total} statements ended{faults_left}", file=sys.stderr, flush=True)
        if time.monotonic() - moved > STUCK:
            still = ", ".join(f"{key} {users.states.get(key)}" for keys in users.open.values() for key in keys)
            world.told.append(f"nothing ended for {STUCK} s: {still}")
            return
        time.sleep(0.02)


def settled(users, before, world):
    """The differences, once what is left behind has had its time to be swept."""
    end = time.monotonic() + SETTLE
    while verdict.compare(users, before, verdict.Left(world.store, world.exports)) and time.monotonic() < end:
        time.sleep(1)
    world.close()
    after = verdict.Left(world.store, world.exports)
    return verdict.compare(users, before, after) + verdict.ended(after) + world.told, after


def table(chaos, world, users, after, seconds):
    state = collections.Counter(d["state"] for d in after.statements.values())
    attempts = [c["attempts"] for c in after.companions.values() if c.get("attempts", 0) > 1]
    interrupted = sum(verdict.code(d.get("error", "")) == "INTERRUPTED" for d in after.statements.values())
    kills = {name: chaos.done[name] for name in faults.KILLS}
    rows = [
        ("statements", f"{users.total}: " + ", ".join(f"{n} {s}" for s, n in sorted(state.items()))),
        ("kills", f"{sum(kills.values())}: " + ", ".join(f"{n} {name[5:]}s" for name, n in kills.items())),
    ]
    rows += [(name, str(n)) for name, n in sorted(chaos.done.items()) if name not in faults.KILLS]
    rows += [
        ("takeovers", str(world.count("serving the session") - len(world.sessions))),
        ("statements adopted", str(world.count("adopted a statement that another runner had begun"))),
        ("defines settled by their journal", str(world.count("a define in the journal succeeds"))),
        ("results published or remains removed by a sweep", str(world.count("swept: what a runner had left is settled"))),
        ("statements run more than once", f"{len(attempts)}, {max(attempts, default=1)} times at most"),
        ("writes refused, because another was first", str(world.count("refused: the document was changed by another"))),
        ("writes interrupted", str(interrupted)),
        ("seconds, of these faults", f"{seconds:.0f}"),
    ]
    return "\n".join(["| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in rows])


def main():
    parser = argparse.ArgumentParser(prog="scripts/chaos kill", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="of statements and faults (default: a new one, which is printed)")
    parser.add_argument("--kills", type=int, default=100, help="default: 100")
    parser.add_argument("--statements", type=int, default=1300, help="default: 1300")
    parser.add_argument("--sessions", type=int, default=2, help="default: 2")
    parser.add_argument("--stand-bys", type=int, default=1, help="of each session (default: 1)")
    parser.add_argument("--store", choices=["opensearch", "sqlite"], default="opensearch")
    parser.add_argument("--no-build", action="store_true", help="use the binary that was built last")
    parser.add_argument("--no-restart", action="store_true", help="leave the node running")
    parser.add_argument("--keep", action="store_true", help="keep the logs also of a run without a difference")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended then, too
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    again = (f"scripts/chaos kill --seed {seed} --kills {options.kills} --statements {options.statements} --sessions {options.sessions} "
             f"--stand-bys {options.stand_bys} --store {options.store}{' --no-restart' * options.no_restart}")
    binary = program(not options.no_build)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="firesteel-chaos-"))
    on_server = options.store == "opensearch"
    node = Node(folder) if on_server else None
    print(f"seed {seed}", flush=True)
    sessions = [f"s{n}" for n in range(options.sessions)]
    made = scripts(seed, sessions, options.statements, statements.session)
    worlds, bad = [], True

    def world(name, stand_bys):
        place = folder / name
        store = OpenSearch(node.url, f"{name}_{folder.name[-8:].lower()}") if on_server else Sqlite(folder / f"{name}.sqlite")
        worlds.append(World(binary, SCRIPTS.parent / "sample-data", place, store, sessions, OPTIONS, stand_bys))
        return worlds[-1]

    try:
        calm = world("calm", 0)
        undisturbed = Users(calm.store, made, races=False)
        play(calm, undisturbed)
        calm.close()
        before = verdict.Left(calm.store, calm.exports)
        if calm.told:
            raise RuntimeError("the undisturbed run failed: " + "; ".join(calm.told))

        chaotic = world("chaos", options.stand_bys)
        users = Users(chaotic.store, made, races=True)
        restart = on_server and node.ours and not options.no_restart

        def restart_node():
            node.url = node.run("restart")
            chaotic.move(node.url)

        chaos = faults.Faults(chaotic, users, seed, faults.plan(seed, options.kills, on_server, restart), restart_node)
        began = time.monotonic()
        play(chaotic, users, chaos)
        chaos.finish()
        seconds = time.monotonic() - began
        chaotic.until(lambda: all(chaotic.owner(s) for s in sessions), 60, "the sessions to be served at the end")
        found, after = settled(users, before, chaotic)
        if not any(chaos.done[name] for name in faults.KILLS):
            found.append("no kill had its turn")
        if chaotic.count("panicked at"):
            found.append("a process panicked")
        print(table(chaos, chaotic, users, after, seconds))
        if chaos.names:
            print(f"\n{len(chaos.names)} faults had no turn before the last statement had ended: with more --statements they have")
        print(f"\n{len(found)} differences, seed {seed}")
        for line in found:
            print(f"difference: {line}")
        bad = bool(found)
        if bad:
            before.keep(folder / "calm.json")
            after.keep(folder / "chaos.json")
    finally:
        for one in worlds:
            one.kill()
        if node and node.ours:
            node.run("stop")
        elif node and not bad:
            for one in worlds:
                one.store.remove()
        if bad or options.keep:
            print(f"logs and documents: {folder}\nagain: {again}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
