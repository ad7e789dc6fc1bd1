"""An import on its way: every record of a source in a scratch table on disk, in flat memory.

The table is SQLite's, in a temporary file that has no name: it is gone when the process is, however
it ends. It lies in the folder that TMPDIR names. `pipeline.golden.duplicates` decides in it.
"""

import codecs
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from pipeline.errors import InputError
from pipeline.golden.conflicts import merged, reason_of
from pipeline.golden.duplicates import (
    Conflicts,
    Fate,
    check_size,
    decide,
    refuse_beside,
    repeats,
)
from pipeline.golden.fingerprint import text_hash
from pipeline.golden.formats import Header, Notice, Read, Record, Refused
from pipeline.golden.places import Places, Repeats
from pipeline.safe_text import clean
from pipeline.text import holds_invisible, is_composed
from pipeline.types import Kind, Question, Source

_DIGEST_BYTES = 16
_LINE_BREAKS = re.compile(r"[\t\n\r\u2028\u2029]+")

# `name`, `text_key`, `gold` and `labels` are digests: of the external id, of the text as a reader
# sees it with the tenant, of what is expected, and of all else. `verdict` is NULL for a question
# that stands, else a `Fate`; `other` is the row that it repeats or contradicts.
_TABLE = """
CREATE TABLE staged (
    seq INTEGER PRIMARY KEY, place TEXT NOT NULL, name BLOB, text_key BLOB, gold BLOB, labels BLOB,
    question TEXT, raw BLOB, reason TEXT, verdict TEXT, other INTEGER
)
"""
_INSERT = """
INSERT INTO staged (place, name, text_key, gold, labels, question, raw, reason, verdict)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_STANDING = "SELECT seq, question FROM staged WHERE verdict IS NULL ORDER BY seq"
_WITH_MERGED = """
SELECT coalesce(other, seq), question FROM staged WHERE verdict IS NULL OR verdict = 'merged'
ORDER BY coalesce(other, seq), verdict IS NOT NULL, seq
"""
_REFUSALS = """
SELECT s.place, s.verdict, s.reason, s.raw, s.question, o.place, o.question
FROM staged s LEFT JOIN staged o ON o.seq = s.other
WHERE s.verdict NOT IN ('repeat', 'merged') ORDER BY s.seq
"""

_Row: TypeAlias = tuple[str | bytes | None, ...]


class StagedImport:
    """The questions of one import, each once, and what became of the records that are no question.

    `kept` + `repeated.count` + `merged.count` + `refused` is the number of records read.
    `relabelled` are those of `repeated` whose category, language, source, must_pass, notes or
    evidence differ from the other line's, which stand. `same_text` are kept questions whose text
    and tenant an earlier one has. `unanswerable` is known once all questions were taken. `header`
    is what a file of refused lines begins with.
    """

    def __init__(self, source: str, table: sqlite3.Connection, *, skip_bad: bool) -> None:
        self.source = _one_line(source)
        self.header = ""
        self.kept = self.refused = self.unanswerable = 0
        self.repeated = Repeats()
        self.relabelled = Repeats()
        self.merged = Repeats()
        self.same_text = Repeats()
        self._invisible = Places()
        self._decomposed = Places()
        self._notices: list[str] = []
        self._table = table
        self._skip_bad = skip_bad
        table.execute(_TABLE)

    def questions(self) -> Iterator[Question]:
        """Yield the questions to import, in the order of the source, those merged as one.

        Raises InputError when a merged question expects too many keys.
        """
        self.unanswerable = 0
        rows = self._table.execute(_WITH_MERGED if self.merged.count else _STANDING)
        for _, group in groupby(rows, key=itemgetter(0)):
            question = merged([_loaded(stored) for _, stored in group], self.source)
            self.unanswerable += question.kind is Kind.UNANSWERABLE
            yield question

    def refusals(self) -> Iterator[Refused]:
        """Yield what is not imported because of a fault, in the order of the source."""
        for place, fate, reason, raw, question, elsewhere, other in self._table.execute(_REFUSALS):
            beside = None if other is None else _loaded(other)
            why = reason or reason_of(Fate(fate), _loaded(question), elsewhere, beside)
            yield Refused(place, why, _unpacked(raw or b""))

    def head_of_refused(self) -> str:
        """Return what a file of the refused lines begins with.

        A table that is not ASCII needs a byte order mark for a spreadsheet to take it for UTF-8.
        """
        is_ascii = all(refused.raw.isascii() for refused in self.refusals())
        marked = self.header and not (is_ascii and self.header.isascii())
        return codecs.BOM_UTF8.decode() + self.header if marked else self.header

    def warnings(self) -> list[str]:
        """Say, one line each, what a person should look at; empty when there is nothing."""
        found: dict[str, Places | Repeats] = {
            "repeated with another category, language, source, must_pass, notes or evidence (those "
            "of the other line were kept)": self.relabelled,
            "with the text of an earlier question (both were kept)": self.same_text,
            "merged into the one with the same text (all keys, the higher grade)": self.merged,
            "with zero-width characters or byte order marks (kept)": self._invisible,
            "not in Unicode's form NFC (kept)": self._decomposed,
        }
        shown = [
            f"questions {what}: {where.shown(self.source)}"
            for what, where in found.items()
            if where.count
        ]
        return [f"{self.source}: {warning}" for warning in [*self._notices, *shown]]

    def read(self, records: Iterable[Record]) -> None:
        """Take all records in; raises InputError for a refused one unless bad ones are skipped."""
        self._table.execute("BEGIN")
        self._table.executemany(_INSERT, self._rows(records))
        self._table.execute("COMMIT")

    def _rows(self, records: Iterable[Record]) -> Iterator[_Row]:
        count = 0
        for record in records:
            match record:
                case Header():
                    self.header = record.raw
                case Notice():
                    self._notices.append(_one_line(record.text))
                case Read() | Refused():
                    count += 1
                    check_size(count, self.source)
                    yield self._row_of(record)
        if not count:
            said = "".join(f"; {notice}" for notice in self._notices)
            raise InputError(f"{self.source}: holds no question{said}")

    def _row_of(self, record: Read | Refused) -> _Row:
        place = _one_line(record.place)
        if isinstance(record, Read):
            self._note(record, place)
            raw = _packed(record.raw) if self._skip_bad else None
            return (place, *_digests(record.question), _dumped(record.question), raw, None, None)
        reason = _one_line(record.reason)
        if not self._skip_bad:
            raise InputError(f"{place}: {reason}")
        name = None if record.external_id is None else _digest(record.external_id)
        text_key = None if record.text is None else _text_key(record.text, record.tenant)
        return (place, name, text_key, None, None, None, _packed(record.raw), reason,
                Fate.UNREADABLE)  # fmt: skip

    def _note(self, record: Read, place: str) -> None:
        texts = (record.question.text, *record.question.expected)
        if any(map(holds_invisible, texts)):
            self._invisible.add(place)
        if not all(map(is_composed, texts)):
            self._decomposed.add(place)

    def decide(self, conflicts: Conflicts) -> None:
        """Say of each record what becomes of it, and count.

        Raises InputError for the first that is refused, unless bad ones are skipped.
        """
        decide(self._table, conflicts)
        if not self._skip_bad:
            for refused in self.refusals():
                raise InputError(f"{refused.place}: {refused.reason}")
        refuse_beside(self._table)
        self.repeated = repeats(self._table, Fate.REPEAT)
        self.relabelled = repeats(self._table, Fate.REPEAT, relabelled=True)
        self.merged = repeats(self._table, Fate.MERGED)
        self.same_text = repeats(self._table, Fate.SAME_TEXT)
        total, self.kept = self._table.execute(
            "SELECT count(*), count(*) - count(verdict) FROM staged"
        ).fetchone()
        self.refused = total - self.kept - self.repeated.count - self.merged.count


@contextmanager
def staged(
    source: str,
    records: Iterable[Record],
    *,
    conflicts: Conflicts = Conflicts.REFUSE,
    skip_bad: bool = False,
) -> Iterator[StagedImport]:
    """Read all records, decide what becomes of each, and give the import for the block's time.

    `source` is what messages name. Raises InputError for the first fault, in a record or between
    two, unless `skip_bad`; for a source without a record, for more than MAX_QUESTIONS of them, and
    when there is no room for the scratch file.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as table:
        # Nothing of it outlives the process, so nothing has to be safe from a crash.
        table.executescript("PRAGMA journal_mode = OFF; PRAGMA temp_store = FILE")
        plan = StagedImport(source, table, skip_bad=skip_bad)
        try:
            plan.read(records)
            plan.decide(conflicts)
            yield plan
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{source}: the scratch file of the import cannot be written ({error}): make room, "
                "or name another folder in TMPDIR"
            ) from None


def _digests(question: Question) -> tuple[bytes | None, bytes, bytes, bytes]:
    labels = (question.category, question.language, question.source, question.must_pass,
              question.notes, sorted(question.evidence.items()))  # fmt: skip
    return (
        None if question.external_id is None else _digest(question.external_id),
        _text_key(question.text, question.tenant),
        _digest([question.kind, sorted(question.expected.items())]),
        _digest(labels),
    )


def _text_key(text: str, tenant: str | None) -> bytes:
    return bytes.fromhex(text_hash(text, tenant))[:_DIGEST_BYTES]


def _digest(value: object) -> bytes:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=_DIGEST_BYTES).digest()


def _dumped(question: Question) -> str:
    return json.dumps([getattr(question, name) for name in Question.__slots__])


def _loaded(stored: str) -> Question:
    fields = dict(zip(Question.__slots__, json.loads(stored), strict=True))
    kind, source = Kind(fields.pop("kind")), Source(fields.pop("source"))
    return Question(**fields, kind=kind, source=source)


def _one_line(text: str) -> str:
    """Return a place or reason, which may quote anything, as one line that a terminal may show."""
    return clean(_LINE_BREAKS.sub(" ", text))


def _packed(raw: str) -> bytes:
    return raw.encode(errors="surrogateescape")


def _unpacked(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
