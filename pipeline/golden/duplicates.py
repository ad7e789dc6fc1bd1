"""Records of one import that meet: which stand, which are repeats, merged, refused.

An `external_id` names a question: two ids are two questions by their owner's word, whatever their
texts. Without one a question is its text as a reader sees it, with its tenant. What the same
question expects must be the same everywhere, unless a person says what to do: see `Conflicts`.

All is decided by SQL in the scratch table of `pipeline.golden.staging`, which explains its columns:
a million records are a few sorts on disk.
"""

import sqlite3
from enum import StrEnum

from pipeline.errors import InputError
from pipeline.golden.places import EXAMPLES, Repeats

MAX_QUESTIONS = 5_000_000
"""Questions of one golden set, and so of one run."""


class Conflicts(StrEnum):
    """What becomes of one question with two lists of expected keys.

    `MERGE`: one question that expects all keys, each with its higher grade. `KEEP_BOTH`: two
    questions, as in collections where one question was asked of several paragraphs.
    """

    REFUSE = "refuse"
    MERGE = "merge"
    KEEP_BOTH = "keep-both"


class Fate(StrEnum):
    """What became of a record that is not simply a question of its own.

    `SAME_TEXT`: it stands, although an earlier one has its text. `REPEAT` and `MERGED`: another one
    stands for it. All others are refused; `BESIDE_REFUSED` because another record of the question
    is: to import that alone once it is corrected would retire or overwrite this one.
    """

    SAME_TEXT = "same-text"
    REPEAT = "repeat"
    MERGED = "merged"
    UNREADABLE = "unreadable"
    TWO_QUESTIONS = "two-questions"
    OTHER_GOLD = "other-gold"
    OTHER_LABELS = "other-labels"
    BESIDE_REFUSED = "beside-refused"


def check_size(questions: int, what: str) -> None:
    """Raise InputError for more questions than one golden set may have."""
    if questions > MAX_QUESTIONS:
        raise InputError(f"{what}: holds more than {MAX_QUESTIONS:,} questions: split it")


# Of those that say the same, the first with a name stands, else the first.
_VIEWS = """
CREATE INDEX staged_name ON staged (name) WHERE name IS NOT NULL;
CREATE INDEX staged_text ON staged (text_key, gold);

CREATE VIEW same_id AS
SELECT name, min(seq) AS seq FROM staged WHERE name IS NOT NULL AND verdict IS NULL
GROUP BY name HAVING count(*) > 1;

CREATE VIEW same_gold AS
SELECT text_key, gold, coalesce(min(CASE WHEN name IS NOT NULL THEN seq END), min(seq)) AS seq
FROM staged WHERE verdict IS NULL GROUP BY text_key, gold HAVING count(*) > 1;

CREATE VIEW same_text AS
SELECT text_key, min(seq) AS first, max(CASE WHEN name IS NULL THEN seq END) AS unnamed,
    coalesce(min(CASE WHEN name IS NOT NULL THEN seq END), min(seq)) AS seq
FROM staged WHERE verdict IS NULL GROUP BY text_key HAVING count(*) > 1;

CREATE VIEW met AS
SELECT s.seq, s.verdict AS fate, s.labels <> o.labels AS relabelled, s.place, o.place AS other
FROM staged s JOIN staged o ON o.seq = s.other
UNION ALL
SELECT s.seq, 'same-text', false, s.place, o.place
FROM same_text t JOIN staged s USING (text_key) JOIN staged o ON o.seq = t.first
WHERE s.verdict IS NULL AND s.seq > t.first;
"""

_BESIDE_UNREADABLE = """
UPDATE staged SET verdict = 'beside-refused', other = faulty.seq
FROM (SELECT name, min(seq) AS seq FROM staged WHERE verdict = 'unreadable' GROUP BY name) faulty
WHERE staged.name = faulty.name AND staged.verdict IS NULL
"""

_SAME_ID = """
UPDATE staged SET other = first.seq, verdict = CASE
    WHEN staged.text_key <> first.text_key THEN 'two-questions'
    WHEN staged.gold <> first.gold THEN :gold
    WHEN staged.labels <> first.labels THEN :labels
    ELSE 'repeat' END
FROM same_id JOIN staged first ON first.seq = same_id.seq
WHERE staged.name = same_id.name AND staged.seq > same_id.seq AND staged.verdict IS NULL
"""

# One fault, and nobody can tell which record of the id is right: all are refused.
_SAME_ID_REFUSED = """
UPDATE staged SET verdict = faulty.verdict, other = faulty.seq
FROM (SELECT name, min(seq) AS seq, verdict FROM staged
      WHERE verdict IN ('two-questions', 'other-gold', 'other-labels') GROUP BY name) faulty
WHERE staged.name = faulty.name
  AND (staged.verdict IS NULL OR staged.verdict IN ('repeat', 'merged'))
"""

_SAME_GOLD = """
UPDATE staged SET verdict = 'repeat', other = same.seq FROM same_gold same
WHERE staged.text_key = same.text_key AND staged.gold = same.gold AND staged.name IS NULL
  AND staged.verdict IS NULL AND staged.seq <> same.seq
"""

_MERGE = """
UPDATE staged SET verdict = 'merged', other = same.seq FROM same_text same
WHERE staged.text_key = same.text_key AND staged.name IS NULL AND staged.verdict IS NULL
  AND staged.seq <> same.seq
"""

# Names alone do not contradict each other; beside one without a name, all do.
_REFUSE = """
UPDATE staged SET verdict = 'other-gold', other =
    CASE WHEN staged.name IS NOT NULL OR staged.seq = same.seq THEN same.unnamed ELSE same.seq END
FROM same_text same
WHERE staged.text_key = same.text_key AND staged.verdict IS NULL AND same.unnamed IS NOT NULL
"""


# A file speaks for the texts that it holds: what it says of one is refused as a whole. What has a
# name is known again by that.
_BESIDE_REFUSED = """
UPDATE staged SET verdict = 'beside-refused', other = faulty.seq
FROM (SELECT text_key, min(seq) AS seq FROM staged
      WHERE verdict NOT IN ('repeat', 'merged') AND text_key IS NOT NULL GROUP BY text_key) faulty
WHERE staged.text_key = faulty.text_key AND staged.name IS NULL
  AND (staged.verdict IS NULL OR staged.verdict = 'merged')
"""


def decide(table: sqlite3.Connection, conflicts: Conflicts) -> None:
    """Give every record that does not stand as a question its fate, and the one that it met."""
    merging = conflicts is Conflicts.MERGE
    table.executescript(_VIEWS)
    table.execute(_BESIDE_UNREADABLE)
    table.execute(_SAME_ID, {
        "gold": Fate.MERGED if merging else Fate.OTHER_GOLD,
        "labels": Fate.REPEAT if merging else Fate.OTHER_LABELS,
    })  # fmt: skip
    table.execute(_SAME_ID_REFUSED)
    table.execute(_SAME_GOLD)
    if conflicts is not Conflicts.KEEP_BOTH:
        table.execute(_MERGE if merging else _REFUSE)


def refuse_beside(table: sqlite3.Connection) -> None:
    """Refuse what cannot be imported without another record that is refused."""
    table.execute(_BESIDE_REFUSED)


def repeats(table: sqlite3.Connection, fate: Fate, *, relabelled: bool = False) -> Repeats:
    """Return the records of one fate beside those that they met; or those of other labels alone."""
    values = {"fate": fate, "relabelled": relabelled, "limit": EXAMPLES}
    condition = "FROM met WHERE fate = :fate AND relabelled >= :relabelled"
    [(count,)] = table.execute(f"SELECT count(*) {condition}", values)
    examples = table.execute(
        f"SELECT place, other {condition} ORDER BY seq LIMIT :limit", values
    ).fetchall()
    return Repeats(count, examples)
