"""Hashes that say whether two questions, or two versions of a golden set, are the same.

A hash is the SHA-256, in hexadecimal, of a JSON array in ASCII (`json.dumps` with the separators
"," and ":"). JSON marks where each value ends and tells null from text, so different values never
give the same bytes. Stored runs are paired by these hashes: a change of the serialisation needs a
new name in its first element, and makes every stored version a new one.
"""

import hashlib
import json
from collections.abc import Iterable

from pipeline.text import normalised
from pipeline.types import Question

_MODULUS = 2**256


def content_hash(question: Question) -> str:
    """Hash what is asked and what should come back: two runs are paired on it.

    Covers `["recallwatch-content-1", text, kind, [[key, grade], ...], tenant, language]`, the keys
    in code point order. Relabelling a question (category, source, notes, `must_pass`,
    `external_id`) does not change it.
    """
    judgments = sorted(question.expected.items())
    return _hash_of(
        "recallwatch-content-1",
        question.text,
        question.kind,
        judgments,
        question.tenant,
        question.language,
    )


def text_hash(text: str, tenant: str | None) -> str:
    """Hash what is asked as a reader sees it: two spellings of one question have one hash.

    Covers `["recallwatch-text-1", normalised(text), tenant]`.
    """
    return _hash_of("recallwatch-text-1", normalised(text), tenant)


def item_hash(question: Question) -> str:
    """Hash all that a golden version copies of a question: everything but the notes.

    Covers `["recallwatch-item-1", content_hash, external_id, category, source, must_pass]`.
    """
    return _hash_of(
        "recallwatch-item-1",
        content_hash(question),
        question.external_id,
        question.category,
        question.source,
        question.must_pass,
    )


def version_fingerprint(item_hashes: Iterable[str]) -> str:
    """Hash a whole set from the `item_hash` of each question, in any order, in flat memory.

    Covers `["recallwatch-version-1", count, sum]`, the sum of the hashes as numbers modulo 2^256,
    in 64 hexadecimal digits (Bellare and Micciancio's AdHash, 1997). A sum counts repeats, which
    exclusive-or would cancel. It is safe from accidents, not from somebody who crafts questions
    to collide.
    """
    count = total = 0
    for digest in item_hashes:
        count += 1
        total = (total + int(digest, 16)) % _MODULUS
    return _hash_of("recallwatch-version-1", count, f"{total:064x}")


def _hash_of(*values: object) -> str:
    serialised = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(serialised.encode("ascii")).hexdigest()
