"""A query handler in Python: `count TABLE` in a language of its own, `plain`. Built by `scripts/plugins python`."""

from wit_world.exports import handler, manifest
from wit_world.imports import catalog, types


class Manifest:
    def describe(self) -> manifest.Description:
        asks = manifest.Requests(http=[], directories=[], writes=False)
        return manifest.Description(
            name="plain",
            version="0.1.0",
            about="questions in plain words",
            languages=["plain"],
            hooks=manifest.Hooks(0),
            functions=[],
            asks=asks,
        )


class Handler:
    def handle(self, statement: handler.Statement) -> handler.Verdict:
        words = statement.text.split()
        if len(words) != 2 or words[0] != "count":
            return reject("this is no question", 1, ["count TABLE"], None)
        if catalog.columns([words[1]]) is None:
            tables = [name[-1] for name in catalog.tables()]
            near = next((t for t in tables if t[:3] == words[1][:3]), None)
            return reject(f"there is no table `{words[1]}`", statement.text.index(words[1]) + 1, [], near)
        name = words[1].replace("`", "``")
        sql = f"SELECT count(*) AS rows FROM `{name}`"
        return handler.Verdict_Rewrite(handler.Rewritten(text=sql, language="sql", origins=[]))


def reject(message, column, expected, nearest):
    position = types.Position(line=1, column=column)
    return handler.Verdict_Reject(handler.Rejection(message, position, expected, nearest))
