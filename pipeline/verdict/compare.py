"""A paired comparison of two runs: only questions that are the same, and scored, in both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the answerable questions of a run and of its reference correspond, in questions.

    `shared` have the same content hash and the same live expected keys in both and are scored in
    both: only they are compared. `changed` stand in both sets with another content; `relived`
    are the same question, but other expected keys are live; `unscored` are the same question,
    failed or ineligible in either run.
    """

    shared: int
    new: int
    changed: int
    gone: int
    relived: int
    unscored: int

    @property
    def share(self) -> float:
        """Shared questions as a share of all that either run holds; 0 when there are none."""
        total = self.shared + self.new + self.changed + self.gone + self.relived + self.unscored
        return self.shared / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A metric's mean over the shared questions, now and before.

    `interval` is the 95 % bootstrap interval of the difference: where it would lie for other
    questions of this kind. `p` is the two-sided sign-flip p-value of no difference. Both are given
    for the metrics at k only.
    """

    metric: str
    current: float
    previous: float
    interval: tuple[float, float] | None = None
    p: float | None = None

    @property
    def difference(self) -> float:
        """Now minus before: below zero is a drop."""
        return self.current - self.previous

    def to_json(self) -> dict[str, Any]:
        """Return the figures and their difference, at full precision."""
        return asdict(self) | {"difference": self.difference}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; records of the first version lack interval and p."""
        interval = values.get("interval")
        return cls(
            values["metric"],
            current=values["current"],
            previous=values["previous"],
            interval=None if interval is None else (interval[0], interval[1]),
            p=values.get("p"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactComparison:
    """Two runs by what exact search finds, over the shared questions it was asked in both.

    `lost` and `won` count its hits at k that went and came. `loss_now` and `loss_before` are the
    index losses: recall@k by exact search less recall@k as served, over the same questions.
    `missed_now` and `missed_before` count questions that exact search hits and the index misses.
    """

    shared: int
    changes: Sequence[Change]
    lost: int
    won: int
    loss_now: float
    loss_before: float
    missed_now: int
    missed_before: int

    def to_json(self) -> dict[str, Any]:
        """Return what the run record stores."""
        return asdict(self) | {"changes": [change.to_json() for change in self.changes]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        changes = [Change.from_json(change) for change in values["changes"]]
        return cls(**{**values, "changes": changes})


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """How a metric moved within a group of `n` shared questions."""

    name: str
    metric: str
    difference: float
    n: int


GROUPS = ("categories", "tenants", "sources")
"""The ways in which a comparison groups its questions."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against its reference; `lost` and `won` count hits at k that went and came.

    `corpus` and `setup` say in words how the corpus, and the strategy's settings, differ.
    """

    reference: int
    pairing: Pairing
    changes: Sequence[Change]
    lost: int
    won: int
    corpus: Sequence[str]
    setup: Sequence[str] = ()
    categories: Sequence[CategoryChange] = ()
    tenants: Sequence[CategoryChange] = ()
    sources: Sequence[CategoryChange] = ()
    exact: ExactComparison | None = None

    def change(self, metric: str) -> Change:
        """Return the change of one metric; raises KeyError when it was not compared."""
        for change in self.changes:
            if change.metric == metric:
                return change
        raise KeyError(metric)

    def to_json(self) -> dict[str, Any]:
        """Return what the run record stores."""
        return {
            "reference": self.reference,
            "pairing": asdict(self.pairing),
            "changes": [change.to_json() for change in self.changes],
            "lost": self.lost,
            "won": self.won,
            "corpus": list(self.corpus),
            "setup": list(self.setup),
            **{name: [asdict(group) for group in getattr(self, name)] for name in GROUPS},
            "exact": self.exact.to_json() if self.exact else None,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(
            reference=values["reference"],
            pairing=Pairing(**values["pairing"]),
            changes=[Change.from_json(change) for change in values["changes"]],
            lost=values["lost"],
            won=values["won"],
            corpus=values["corpus"],
            setup=tuple(values.get("setup", ())),
            **{name: _groups(values.get(name, ())) for name in GROUPS},
            exact=ExactComparison.from_json(values["exact"]) if values.get("exact") else None,
        )


def _groups(stored: Sequence[Mapping[str, Any]]) -> tuple[CategoryChange, ...]:
    return tuple(CategoryChange(**group) for group in stored)


_PARTS = (("texts", "chunk texts"), ("vectors", "vectors"))


def corpus_changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Say in words how the corpus differs from the reference's, from two fingerprints.

    A part that was not fingerprinted (None, in a very large corpus) is not spoken of.
    """
    said = []
    if now["chunks"] != before["chunks"]:
        said.append(f"chunks {before['chunks']:,} -> {now['chunks']:,}")
    if now["embedded"] != before["embedded"]:
        said.append(f"embedded chunks {before['embedded']:,} -> {now['embedded']:,}")
    for part, name in _PARTS:
        if now[part] is not None and before[part] is not None:
            said.append(f"{name} {'unchanged' if now[part] == before[part] else 'changed'}")
    if "index" in now and "index" in before:
        said += _index_changes(now["index"], before["index"])
    return said


def _index_changes(now: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> list[str]:
    if now is None or before is None:
        one = now or before
        verb = "created" if now else "dropped"
        return [f"index {one['name']} {verb}"] if one else []
    if index_options(now) != index_options(before):
        return [f"index options changed: {index_options(before)} -> {index_options(now)}"]
    return ["index rebuilt"] if now["file"] != before["file"] else []


def index_options(index: Mapping[str, Any]) -> str:
    """Return an index's method, column and parameters, from a fingerprint's `index`.

    "hnsw (embedding vector_cosine_ops) WITH (m='32')": its name and its table decide nothing.
    """
    _, _, options = str(index["definition"]).partition(" USING ")
    return options


def setup_changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Say which settings differ between two runs, as "strategy.ef_search 40 -> 20".

    Of strategies of two kinds no more is said than "strategy vector -> hybrid".
    """
    then, since = (each.get("strategy", {}).get("kind") for each in (before, now))
    if then != since:
        others = ({k: v for k, v in each.items() if k != "strategy"} for each in (now, before))
        return [f"strategy {then} -> {since}", *setup_changes(*others)]
    one, other = dict(_flat(now)), dict(_flat(before))
    return [
        f"{name} {_shown(other, name)} -> {_shown(one, name)}"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _shown(values: Mapping[str, Any], name: str) -> str:
    return "unset" if values.get(name) is None else str(values[name])


def p_text(p: float) -> str:
    """Return "p = 0.21", or "p < 0.0001"."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"  # noqa: PLR2004 - the last digit shown
