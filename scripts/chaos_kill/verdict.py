"""Compares what a run left in the store with what an undisturbed one left, by the table of attempts: reads and defines end as they would
have; a write ends in success with its effect once, or as interrupted with its effect at most once; what is cancelled has no result."""

import collections
import json

from benchmarks import stores

# What no two runs have in common.
OWN = ("updateTime", "queryRunTime", "jobRunId")


class Left:
    """What a run left: its documents and the files that its writes made."""

    def __init__(self, store, exports):
        self.statements = {k: d for k, d in store.documents("requests").items() if d["type"] == "statement"}
        self.sessions = {k: d for k, d in store.documents("requests").items() if d["type"] == "session"}
        self.staged, self.results = {}, collections.defaultdict(list)
        for key, document in store.documents("results").items():
            if "queryId" in document:
                self.results[document["queryId"]].append(document)
            else:
                self.staged[key] = document
        state = store.documents("state")
        self.companions = {d["statementId"]: d for d in state.values() if d.get("kind") == "companion"}
        self.pages = collections.defaultdict(dict)
        for document in state.values():
            if document.get("kind") == "page":
                self.pages[document["statementId"]].setdefault(document["attempt"], {})[document["page"]] = document["result"]
        self.exports = exports

    def keep(self, file):
        file.write_text(json.dumps({k: v for k, v in vars(self).items() if k != "exports"}, indent=1))

    def result(self, key):
        """The visible results of a statement, as a reader sees them, with their pages."""
        found = []
        for document in self.results[f"q-{key}"]:
            shown = {k: v for k, v in document.items() if k not in OWN}
            candidate = self.companions.get(key, {}).get("candidate")
            shown["pages"] = self.pages[key].get(candidate, {}) if document["status"] == "SUCCESS" else {}
            found.append(shown)
        return found

    def executions(self, folder):
        """The rows of each execution of a write. The files of one share the first part of their names; one with a `#` is not done."""
        made = collections.defaultdict(list)
        for file in sorted((self.exports / folder).glob("*")):
            if "#" not in file.name:
                made[file.name.split("_")[0]] += file.read_text().splitlines()
        return [sorted(lines) for lines in made.values()]


def code(error):
    try:
        return json.loads(error).get("code")
    except ValueError:
        return error


def brief(value):
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 300 else f"{text[:200]} … ({len(text)} characters)"


def compare(users, before, after):
    """The differences, as lines."""
    found = []
    for key, statement in users.ids.items():
        wrong = lambda what: found.append(f"{key} ({statement.kind}): {what}: {statement.query[:100]}")
        ours, theirs = after.statements.get(key), before.statements[key]
        if ours is None:
            wrong("its document is gone")
            continue
        state, error = ours["state"], ours.get("error", "")
        results, expected = after.result(key), before.result(key)
        times = len(after.executions(statement.folder)) if statement.folder else 0
        if state not in stores.TERMINAL:
            wrong(f"it is still {state}")
        elif state == "cancelled":
            if statement.cancel is None:
                wrong("nobody cancelled it")
            if results:
                wrong(f"cancelled, and {len(results)} results are visible")
        elif statement.folder and state == "failed" and code(error) == "INTERRUPTED":
            if [r["status"] for r in results] != ["FAILED"]:
                wrong(f"interrupted, and its results are {brief([r['status'] for r in results])}")
        else:
            shown = raced(key, statement, after, expected)
            if (state, error) != (theirs["state"], theirs.get("error", "")) and statement.cancel is None:
                wrong(f"{state} {brief(error)} in place of {theirs['state']} {brief(theirs.get('error', ''))}")
            if len(results) != 1:
                wrong(f"{len(results)} results are visible")
            elif theirs["state"] == state and results != shown:
                wrong(f"its result is {brief(results)} in place of {brief(shown)}")
        if statement.folder:
            rows = after.executions(statement.folder)
            if times > 1 or (state == "success" and times != 1):
                wrong(f"{state}, and its effect is there {times} times")
            elif state == "success" and rows != before.executions(statement.folder):
                wrong("its effect differs")
        found += remains(key, state, after)
    found += [f"{key}: a staged result nobody sees was left: {brief(document)}" for key, document in after.staged.items()]
    return found


def ended(after):
    """The sessions that did not end as they should when their runners were told to stop."""
    return [f"session {key} is {d['state']} {d.get('error', '')}" for key, d in after.sessions.items() if d["state"] != "dead"]


def raced(key, statement, after, expected):
    """What shows a setting shows the value that was in force: a define that was cancelled in time is not."""
    if statement.hangs_on is None:
        return expected
    session, n = key.rsplit("/", 1)
    if after.statements[f"{session}/{int(n) - 1}"]["state"] == "success":
        return expected
    return [{**e, "result": [row.replace(*statement.hangs_on) for row in e["result"]]} for e in expected]


def remains(key, state, after):
    companion = after.companions.get(key, {})
    decided = companion.get("candidate") if state == "success" else None
    for attempt in after.pages[key]:
        if attempt != decided:
            yield f"{key}: pages of attempt {attempt} were left, {state} with candidate {companion.get('candidate')!r}"
    if state in ("success", "failed") and companion.get("state") != "published":
        yield f"{key}: {state}, and its companion is not published: {brief(companion)}"
