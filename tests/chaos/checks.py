"""Whether a run's record is right: every number against the oracle, every count, every alert."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.oracle import Expected, means
from tests.chaos.settings_file import INDEXED

TOLERANCE = 1e-9

_RUN = """
SELECT r.*, v.set_name FROM recallwatch.run r JOIN recallwatch.batch b ON b.id = r.batch_id
JOIN recallwatch.golden_version v ON v.id = b.version_id WHERE r.id = ANY(%s) ORDER BY r.id
"""
_RESULTS = """
SELECT r.*, i.text FROM recallwatch.result r
JOIN recallwatch.run ON run.id = r.run_id JOIN recallwatch.batch b ON b.id = run.batch_id
JOIN recallwatch.golden_item i ON i.version_id = b.version_id AND i.position = r.position
WHERE r.run_id = %s
"""
_EXACT = """
SELECT x.*, i.text FROM recallwatch.exact_result x
JOIN recallwatch.run ON run.id = x.run_id JOIN recallwatch.batch b ON b.id = run.batch_id
JOIN recallwatch.golden_item i ON i.version_id = b.version_id AND i.position = x.position
WHERE x.run_id = %s
"""
_ALERTS = "SELECT channel, kind, state FROM recallwatch.alert WHERE run_id = %s"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """What the database holds of one run when it has ended."""

    run: Row
    results: Sequence[Row]
    exact: Sequence[Row]
    alerts: Sequence[Row]

    @property
    def id(self) -> int:
        return int(self.run["id"])

    @property
    def completed(self) -> bool:
        return bool(self.run["status"] == "completed")

    @property
    def reason(self) -> str:
        return "; ".join(self.run["reasons"] or ())


def records(connection: psycopg.Connection[Any], run_ids: Sequence[int]) -> list[Record]:
    """Read what the database holds of these runs."""
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(_RUN, [list(run_ids)]).fetchall()
        return [
            Record(
                run,
                cursor.execute(_RESULTS, [run["id"]]).fetchall(),
                cursor.execute(_EXACT, [run["id"]]).fetchall(),
                cursor.execute(_ALERTS, [run["id"]]).fetchall(),
            )
            for run in found
        ]


def wrong_numbers(record: Record, expected: Mapping[str, Expected]) -> Iterator[str]:
    """Yield what differs from the oracle in a completed run."""
    yield from _wrong_counts(record, expected)
    for result in record.results:
        yield from _wrong_result(record, result, expected[result["text"]])
    if record.run["strategy"] == INDEXED:
        yield from _wrong_exact(record, expected)
    for name, mean in means(expected).items():
        stored = record.run["metrics"].get(name)
        if stored is None or not math.isclose(stored, mean, abs_tol=TOLERANCE):
            yield f"run {record.id}: {name} is {stored}, must be {mean}"


def _wrong_counts(record: Record, expected: Mapping[str, Expected]) -> Iterator[str]:
    scored = sum(each.measures is not None for each in expected.values())
    must = {"n_scored": scored, "n_failed": 0, "n_ineligible": len(expected) - scored}
    are = {name: record.run[name] for name in must}
    if are != must:
        yield f"run {record.id}: counts are {are}, must be {must}"
    positions = [result["position"] for result in record.results]
    if sorted(positions) != list(range(len(expected))):
        yield f"run {record.id}: {len(positions)} results for {len(expected)} questions"


def _wrong_result(record: Record, result: Row, expected: Expected) -> Iterator[str]:
    place = f"run {record.id}, position {result['position']}"
    if result["outcome"] != ("ineligible" if expected.measures is None else "scored"):
        yield f"{place}: is {result['outcome']}"
        return
    if list(result["retrieved"]) != list(expected.retrieved):
        yield f"{place}: retrieved {result['retrieved']}, must be {expected.retrieved}"
    if expected.measures is not None:
        yield from _wrong_measures(record, result, expected.measures)


def _wrong_measures(record: Record, row: Row, measures: Mapping[str, float]) -> Iterator[str]:
    place = f"run {record.id}, position {row['position']}"
    stored = dict(zip(record.run["measures"], row["measured"], strict=True))
    if stored.keys() != measures.keys():
        yield f"{place}: measures are {sorted(stored)}"
        return
    for name, value in measures.items():
        if not math.isclose(stored[name], value, abs_tol=TOLERANCE):
            yield f"{place}: {name} is {stored[name]}, must be {value}"


def _wrong_exact(record: Record, expected: Mapping[str, Expected]) -> Iterator[str]:
    """Yield what differs in exact search; one that was given up says so, and has part of it."""
    summary = record.run["exact"]
    scored = sum(each.measures is not None for each in expected.values())
    if summary is None:
        yield f"run {record.id}: no exact search, and no word of why"
    elif summary["error"] is None and not summary["n"] == len(record.exact) == scored:
        yield f"run {record.id}: {len(record.exact)} exact results for {scored} questions"
    for row in record.exact:
        measures = expected[row["text"]].measures
        if measures is not None:
            yield from _wrong_measures(record, row, measures)


def missing_alerts(record: Record) -> Iterator[str]:
    """Yield the channels that a finished run owes an alert; a cancelled one owes none."""
    kind = {"completed": "regressed", "failed": "unmeasured"}.get(record.run["status"])
    written = {(alert["channel"], alert["kind"]) for alert in record.alerts}
    for channel in ("slack", "hook"):
        if kind is not None and (channel, kind) not in written:
            yield f"run {record.id}: no alert {kind} for {channel} was written"
    for alert in record.alerts:
        if alert["state"] in {"pending", "claimed"}:
            yield f"run {record.id}: alert to {alert['channel']} is {alert['state']} for ever"
