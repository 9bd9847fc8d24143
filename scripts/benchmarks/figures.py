"""One function a figure; each returns rows of (figure, goal, measured)."""

import collections
import ctypes.util
import os
import random
import re
import statistics
import subprocess
import sys
import time
import uuid

from . import queries, stores
from .proxy import Counting
from .runner import Peak, Runner

MB = 1024 * 1024
ms = lambda seconds: f"{seconds * 1000:.1f} ms"


class Bench:
    """What the figures share: the program, the stores, a folder, a table of 10 million rows."""

    def __init__(self, program, direct, folder, url):
        self.program, self.direct, self.folder, self.url = program, direct, folder, url
        self.suffix = uuid.uuid4().hex[:8]

    def sqlite(self, synchronous):
        return stores.Sqlite(self.folder / f"{uuid.uuid4().hex}.sqlite", synchronous)

    def stores(self):
        found = [self.sqlite("normal"), self.sqlite("full")]
        return found + [stores.OpenSearch(self.url, self.suffix)] if self.url else found

    def runner(self, store, options=(), **how):
        return Runner(self.program, store, self.folder, options, **how)

    def big(self):
        """A folder with the table `big`: 10 million rows in a Parquet file."""
        data = self.folder / "data"
        if not data.exists():
            data.mkdir()
            subprocess.run([self.direct, queries.MAKE_BIG.format(file=data / "big.parquet"), "1"], check=True, stdout=subprocess.DEVNULL)
        return data


def startup(bench):
    """Session and statement wait in the store; from the start of the process until the result was found."""
    took = []
    for store in bench.stores()[1:]:
        with bench.runner(store):
            pass  # makes what is missing
        times = []
        for _ in range(9):
            name = "bench-" + uuid.uuid4().hex
            document = stores.statement(name, "SELECT 1")
            store.insert([stores.session(name), document])
            with bench.runner(store, session=name, wait=False) as runner:
                runner.until(lambda: store.result(document["queryId"]), 60, "the first result")
                times.append(time.perf_counter() - runner.began)
        took.append(ms(statistics.median(times)))
    return [("process start → first result, SQLite / OpenSearch", "< 200 / < 500 ms", " / ".join(took))]


def submit(bench):
    """`SELECT 1`, from before its submission until a search found its result: one after the other, and at random moments."""
    calm, pausing = [], []
    for store in bench.stores():
        with bench.runner(store) as runner:
            for _ in range(5):
                runner.run("SELECT 1")
            calm.append(ms(statistics.median(runner.run("SELECT 1")[0] for _ in range(60))))
            times = []
            for _ in range(60):
                time.sleep(random.random() * 0.1)
                times.append(runner.run("SELECT 1")[0])
            pausing.append(ms(statistics.median(times)))
    name = "`SELECT 1`, submit → result readable, median, {}: SQLite NORMAL / FULL / OpenSearch"
    return [(name.format("one after the other"), "< 8 / < 35 / < 55 ms", " / ".join(calm)),
            (name.format("each after a pause of 0–100 ms"), "", " / ".join(pausing))]


def drain(bench):
    """1,000 statements wait at once; from before their submission until the last one ended."""
    rates = []
    for store in bench.stores():
        with bench.runner(store) as runner:
            runner.run("SELECT 1")
            documents = [stores.statement(runner.session, "SELECT 1") for _ in range(1000)]
            for n, document in enumerate(documents):
                document["submitTime"] += n
            keys = [d["statementId"] for d in documents]
            began = time.perf_counter()
            store.insert(documents)

            def all_ended():
                return all(store.states([k]).get(k) in stores.TERMINAL for k in keys[-1:]) and \
                    all(s in stores.TERMINAL for s in store.states(keys).values())
            runner.until(all_ended, 300, "1,000 statements", pause=0.01)
            took = time.perf_counter() - began
            wrong = [s for s in store.states(keys).values() if s != "success"]
            assert not wrong, f"{len(wrong)} did not succeed: {wrong[:3]}"
            rates.append(f"{1000 / took:.0f}/s")
    return [("1,000 waiting statements, one session: SQLite NORMAL / FULL / OpenSearch", "> 300 / > 40 / > 40 a second", " / ".join(rates))]


def requests(bench):
    """Through a proxy that counts: what a read costs after its search, and what an idle session costs."""
    if not bench.url:
        return []
    proxy = Counting(bench.url)
    store = stores.OpenSearch(bench.url, bench.suffix)
    through = stores.OpenSearch(bench.url, bench.suffix)
    through.options[1] = proxy.url
    try:
        with bench.runner(through) as runner:
            runner.store = store
            for _ in range(5):
                runner.run("SELECT 1")
            proxy.requests.clear()
            for _ in range(50):
                runner.run("SELECT 1")
                time.sleep(0.05)
            made = list(proxy.requests)
            heartbeats = sum(1 for m, p in made if p.endswith(f"/{runner.session}"))
            searches = sum(1 for m, p in made if p.endswith("/_search"))
            stats = sum(1 for m, p in made if p.startswith("/_nodes"))
            each = (len(made) - searches - heartbeats - stats) / 50
            time.sleep(70)
            proxy.requests.clear()
            time.sleep(60)
            idle = len(proxy.requests)
            notice = time.perf_counter()
            document = runner.submit("SELECT 1")
            runner.until(lambda: store.states([document["statementId"]])[document["statementId"]] != "waiting", 60, "a claim")
            notice = time.perf_counter() - notice
    finally:
        proxy.close()
    return [("requests to OpenSearch per read, after the search", "4", f"{each:.2f}"),
            ("requests to the store per minute, a session idle for over a minute", "< 90", str(idle)),
            ("… and a statement is then claimed after", "< 1 s", ms(notice))]


def overhead(bench):
    """A group-by over 10 million rows: the job's median against that of DataFusion itself, in turns."""
    data, ours, direct = bench.big(), [], []
    with bench.runner(bench.sqlite("full"), ["--data", str(data)]) as runner:
        runner.run(queries.GROUP_BY)
        for _ in range(5):
            ours += [runner.run(queries.GROUP_BY, pause=0.005)[0] for _ in range(3)]
            out = subprocess.run([bench.direct, queries.GROUP_BY, "4", f"big={data / 'big.parquet'}"], check=True, capture_output=True, text=True)
            direct += [float(line.split()[0]) / 1000 for line in out.stdout.splitlines()[1:]]
    a, b = statistics.median(ours), statistics.median(direct)
    return [("group-by over 10 M rows: the job / DataFusion itself", "< 3 % more", f"{ms(a)} / {ms(b)}: {100 * (a / b - 1):+.1f} %")]


PEER = """
import sys, time, datafusion
context = datafusion.SessionContext()
context.register_parquet("big", sys.argv[2])
for _ in range(4):
    began = time.perf_counter()
    rows = sum(batch.to_pyarrow().num_rows for batch in context.sql(sys.argv[1]).execute_stream())
    print((time.perf_counter() - began) * 1000, "ms")
"""


def profile(bench):
    """Queries on DataFusion as our profile builds it, against PyPI's of the same version, which is built for speed alone (opt-level 3, one
    unit, fat LTO). Needs `pip install datafusion==55.0.0 pyarrow`; where mimalloc's library is, both allocate with it, as PyPI's does."""
    if subprocess.run([sys.executable, "-c", "import datafusion, pyarrow"], stderr=subprocess.DEVNULL).returncode != 0:
        return []
    file = str(bench.big() / "big.parquet")
    mimalloc = ctypes.util.find_library("mimalloc")
    times = lambda command, **how: [
        float(line.split()[0]) for line in subprocess.run(command, check=True, capture_output=True, text=True, **how).stdout.splitlines()[1:]]
    ratios = []
    for query in queries.KERNELS:
        ours, peers = [], []
        for _ in range(3):
            ours += times([bench.direct, query, "4", f"big={file}"], env={**os.environ, **({"LD_PRELOAD": mimalloc} if mimalloc else {})})
            peers += times([sys.executable, "-c", PEER, query, file])
        ratios.append(statistics.median(ours) / statistics.median(peers))
    percent = lambda ratio: f"{100 * (ratio - 1):+.1f} %"
    return [(f"{len(ratios)} queries over 10 M rows, our profile / DataFusion with opt-level 3 and fat LTO: geometric mean (from … to)", "< 5 % more",
             f"{percent(statistics.geometric_mean(ratios))} ({percent(min(ratios))} to {percent(max(ratios))})")]


def memory(bench):
    """Resident after 100 statements, a few seconds later."""
    with bench.runner(bench.sqlite("full")) as runner:
        for _ in range(100):
            runner.run("SELECT 1")
        time.sleep(3)
        own, workers = runner.memory()
    return [("resident, idle after 100 statements: runner / its worker", "< 40 / < 80 MB",
             f"{own / MB:.0f} / {max(workers, default=0) / MB:.0f} MB")]


def pages(bench):
    """A result of 10 million rows, all of it into pages: the peak of runner and workers over what they had when idle."""
    data = bench.big()
    with bench.runner(bench.sqlite("normal"), ["--data", str(data), "--large-results", "pages"]) as runner:
        runner.run("SELECT count(*) FROM big")
        time.sleep(1)
        own, workers = runner.memory()
        with Peak(runner) as peak:
            took, _ = runner.run(queries.TEN_MILLION_ROWS, pause=0.05)
    return [("10 M rows into pages: peak over idle, runner and workers", "< 150 MB", f"{(peak.bytes - own - sum(workers)) / MB:.0f} MB, in {took:.1f} s")]


def cancel(bench):
    """Each of 12 kinds of query is cancelled after it ran for half a second and another statement is submitted: from the cancel
    until that one's result was found and the workers' memory is back."""
    data, worst, slowest = bench.big(), 0.0, ""
    with bench.runner(bench.sqlite("full"), ["--data", str(data), "--large-results", "pages"]) as runner:
        runner.run("SELECT count(*) FROM big")
        idle = sum(runner.memory()[1])
        for name, query in queries.CANCELLED.items():
            document = runner.submit(query)
            key = document["statementId"]
            runner.until(lambda: runner.store.states([key])[key] != "waiting", 60, f"the claim of {name}")
            time.sleep(0.5)
            state = runner.store.states([key])[key]
            assert state == "running", f"{name} was over too soon: {state} {runner.store.result(document['queryId'])}"[:500]
            began = time.perf_counter()
            runner.store.cancel(key)
            runner.run("SELECT 1")
            runner.until(lambda: sum(runner.memory()[1]) < idle + 100 * MB, 60, f"the memory of {name}", pause=0.005)
            took = time.perf_counter() - began
            print(f"    cancel: {name}: {ms(took)}", flush=True)
            if took > worst:
                worst, slowest = took, name
            assert runner.store.states([key])[key] == "cancelled", name
    return [(f"cancel → memory back, next statement done, worst of {len(queries.CANCELLED)} kinds of query", "< 1.2 s", f"{worst:.2f} s ({slowest})")]


def replay(bench):
    """10,000 SETs in one session, whose runner is then killed: how long its successor reads the journal, and until it has answered."""
    store = bench.sqlite("normal")
    with bench.runner(store, ["--heartbeat", "200ms", "--first-heartbeat", "100ms"]) as runner:
        documents = [stores.statement(runner.session, f"SET spark.sql.session.timeZone = +{n % 12:02}:00") for n in range(10_000)]
        for n, document in enumerate(documents):
            document["submitTime"] += n
        store.insert(documents)
        last = documents[-1]["statementId"]
        runner.until(lambda: store.states([last])[last] in stores.TERMINAL, 600, "10,000 SETs", pause=0.05)
        runner.process.kill()
        runner.process.wait()
    with bench.runner(store, session=runner.session, wait=False) as successor:
        _, result = successor.run("SET spark.sql.session.timeZone")
        assert "+03:00" in str(result), f"not the last of the settings: {result}"[:300]
        said = next(line for line in successor.log.read_text().splitlines() if "journal was read" in line)
        took = re.search(r"millis=.*?(\d+)", said).group(1)
    return [("a session of 10,000 SETs whose runner was killed: its journal is read in", "< 100 ms", f"{took} ms")]


def sessions(bench):
    """1,000 sessions without statements in one process: what each adds to its memory, what all cost the store in requests, and the first
    statement of a session whose worker was retired, from before its submission until its result was found."""
    names = [f"many-{n:04}" for n in range(1001)]
    each, first, made = [], [], None
    for store in bench.stores()[1:]:
        with bench.runner(store):
            pass  # makes what is missing
        served, proxy = store, None
        if isinstance(store, stores.OpenSearch):
            proxy = Counting(bench.url)
            served = stores.OpenSearch(bench.url, bench.suffix)
            served.options[1] = proxy.url
        options = ["--inactivity", "1h", "--retire-idle", "1s", "--stop-grace", "1s"]
        try:
            with bench.runner(served, options, session=names[0], pattern="many-*", wait=False) as runner:
                runner.store = store
                store.insert([stores.session(names[0])])
                runner.until(runner.serving, 60, "the first session to be served")
                for _ in range(20):
                    runner.run("SELECT 1")
                time.sleep(3)
                alone = runner.memory()[0]
                store.insert([stores.session(name) for name in names[1:]])
                runner.until(lambda: set(store.states(names).values()) == {"running"}, 120, "1,000 sessions to be served", pause=0.1)
                time.sleep(90)  # idle for over a minute, and renewed
                each.append(f"{(runner.memory()[0] - alone) / 1000 / 1024:.0f} kB")
                if proxy:
                    proxy.requests.clear()
                    time.sleep(60)
                    kinds = collections.Counter(path.rsplit("/", 1)[1] for _, path in proxy.requests)
                    made = f"{len(proxy.requests)} ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})"
                times = []
                for name in names[1:31]:
                    runner.session = name
                    runner.run("SET spark.sql.session.timeZone = +02:00")
                    # Its worker is gone, but for the one that is kept ahead.
                    runner.until(lambda: len(runner.workers()) <= 1, 60, "its worker to be retired", pause=0.05)
                    times.append(runner.run("SELECT 1")[0])
                first.append(f"{ms(statistics.median(times))}, at most {ms(max(times))}")
        finally:
            if proxy:
                proxy.close()
    rows = [("1,000 idle sessions in one process, resident for each: SQLite / OpenSearch", "< 50 kB", " / ".join(each)),
            ("… and the first statement of one whose worker was retired: SQLite FULL / OpenSearch", "< 150 ms", " / ".join(first))]
    return rows + [("… and requests to the store per minute", "< 90", made)] if made else rows


ALL = {f.__name__: f for f in (startup, submit, drain, requests, overhead, profile, memory, pages, cancel, replay, sessions)}
