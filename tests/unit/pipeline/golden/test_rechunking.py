"""Judged texts in a corpus that was cut anew: the truth is known, for the test cut it."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.golden.rechunking import PIECE, Evidence, Found, Search
from pipeline.types import KeyState

WORDS = ["router", "reset", "battery", "remote", "parcel", "weight", "refund", "manual", "cable",
         "socket", "drawer", "filter", "engine", "valve", "signal", "carton"]  # fmt: skip


def sentence(seed: int, words: int = 40) -> str:
    """Return words in an order that another seed does not give."""
    return " ".join(f"{WORDS[(seed * 7 + i * i * 5) % len(WORDS)]}{seed}{i}" for i in range(words))


A, B, C = sentence(1), sentence(2), sentence(3)

PORTUGUESE = (
    "A matrícula é renovada a cada semestre pelo próprio estudante, no sistema da universidade."
    " Quem não a renova no prazo perde a vaga, salvo se o colegiado aceitar o seu pedido."
)
JAPANESE = (
    "返品は商品の到着後三十日以内に限り、領収書を添えてお申し込みください。返金はご利用のクレジットカード"
    "に対して行われ、手続きには通常五営業日ほどかかります。送料はお客様のご負担となります。"
)
THAI = (
    "การรับประกันครอบคลุมความบกพร่องจากการผลิตเป็นเวลาสามปีนับจากวันที่ซื้อ"
    "กรุณาเก็บใบเสร็จรับเงินไว้เป็นหลักฐานและติดต่อศูนย์บริการใกล้บ้านท่าน"
)


def find(evidence: Mapping[str, str], chunks: Mapping[str, str]) -> dict[str, Found]:
    search = Search([Evidence(key, text) for key, text in evidence.items()])
    for key, text in chunks.items():
        search.see(key, text)
    return dict(zip(evidence, search.found(), strict=True))


def one(text: str, chunks: Mapping[str, str], key: str = "d:0") -> Found:
    return find({key: text}, chunks)[key]


def places(found: Found) -> dict[str, float]:
    return {place.key: round(place.share, 2) for place in found.places}


def test_the_same_text_under_the_key_is_live() -> None:
    found = one(A, {"d:0": A, "d:1": B})

    assert (found.state, places(found), found.usable) == (KeyState.LIVE, {"d:0": 1}, True)


def test_other_white_space_is_the_same_text() -> None:
    assert one(A, {"d:0": A.replace(" ", "\n ")}).state is KeyState.LIVE


def test_the_same_text_under_another_key_has_moved_though_the_key_is_still_there() -> None:
    found = one(A, {"d:0": B, "d:1": A})

    assert (found.state, places(found)) == (KeyState.MOVED, {"d:1": 1})
    assert found.safe
    assert not found.usable


def test_of_two_copies_the_one_in_the_same_document_then_the_nearest_is_meant() -> None:
    assert places(one(A, {"e:0": A, "d:9": A, "d:3": A})) == {"d:3": 1}


@pytest.mark.parametrize("names", [("acme:0", "globex:5"), ("globex:5", "acme:0")])
@pytest.mark.parametrize("around", ["{}", "Before it. {} After it."])
def test_of_copies_in_other_documents_nobody_knows_which_is_meant(
    names: tuple[str, str], around: str
) -> None:
    found = one(A, {name: around.format(A) for name in names})

    assert [place.key for place in found.places] == ["acme:0", "globex:5"]
    assert (found.ambiguous, found.safe) == (True, False)


def test_halves_in_two_copies_of_a_document_are_not_proposed_as_those_of_one() -> None:
    cut = len(A) // 2
    halves = {f"{name}:{n}": half for name in "ef" for n, half in enumerate([A[:cut], A[cut:]])}

    found = one(A, halves)

    assert (found.state, found.ambiguous) == (KeyState.SPLIT, True)
    assert list(places(found)) == ["e:0", "e:1", "f:0", "f:1"]


@given(st.permutations([f"{name}:{n}" for name in "efg" for n in range(60)]))
@settings(max_examples=10)
def test_what_is_found_does_not_hang_on_the_order_of_the_chunks(names: list[str]) -> None:
    assert one(A, dict.fromkeys(names, A)) == one(A, dict.fromkeys(sorted(names), A))


@pytest.mark.parametrize(
    ("tenant", "found"), [("acme", {"f:0"}), ("globex", {"e:0"}), (None, {"e:0", "f:0"})]
)
def test_the_chunks_of_another_tenant_hold_nothing_of_it(
    tenant: str | None, found: set[str]
) -> None:
    search = Search([Evidence("d:0", A, tenant)])
    search.see("e:0", A, "globex")
    search.see("f:0", A, "acme")

    [seen] = search.found()
    assert set(places(seen)) == found
    assert seen.safe == (tenant is not None)


def test_a_chunk_of_no_tenant_is_anybodys() -> None:
    search = Search([Evidence("d:0", A, "acme")])
    search.see("e:0", A)

    assert [each.state for each in search.found()] == [KeyState.MOVED]


def test_a_document_that_was_renamed_is_found() -> None:
    found = find({"d:0": A, "d:1": B}, {"new/d:0": A, "new/d:1": B})

    assert {key: places(each) for key, each in found.items()} == {
        "d:0": {"new/d:0": 1}, "d:1": {"new/d:1": 1},
    }  # fmt: skip


def test_a_text_within_a_larger_chunk_is_merged() -> None:
    found = find({"d:0": A, "d:1": B}, {"d:0": f"{A}\n\n{B}", "d:1": C})

    assert {key: (each.state, places(each)) for key, each in found.items()} == {
        "d:0": (KeyState.MERGED, {"d:0": 1}),
        "d:1": (KeyState.MERGED, {"d:0": 1}),
    }
    assert found["d:0"].usable
    assert not found["d:1"].usable


def test_overlapping_chunks_that_hold_all_of_it_are_all_its_places() -> None:
    assert places(one(A, {"d:4": f"{B} {A}", "d:5": f"{A} {C}"})) == {"d:4": 1, "d:5": 1}


def test_a_heading_that_many_chunks_quote_is_not_safe_to_remap() -> None:
    found = one("Returns and refunds", {
        "d:3": f"Returns and refunds {A}", "d:7": f"see Returns and refunds {B}",
    })  # fmt: skip

    assert (found.state, found.ambiguous, found.safe) == (KeyState.MERGED, True, False)


def test_a_text_across_chunks_is_split_with_the_share_of_each() -> None:
    cut = len(A) // 4
    found = one(A, {"d:0": f"{B} {A[:cut]}", "d:1": A[cut:] + C})

    assert found.state is KeyState.SPLIT
    assert places(found) == {
        "d:0": pytest.approx(0.25, abs=0.02), "d:1": pytest.approx(0.75, abs=0.02),
    }  # fmt: skip
    assert not found.safe
    assert not found.usable


def test_a_common_header_is_no_piece() -> None:
    header = "Handbook of the household appliances company, edition of 2026. " * 2
    cut = len(A) // 2
    found = one(
        header + A,
        {"d:0": header + A[:cut], "d:1": header + A[cut:], "d:2": header + B, "d:3": header + C},
    )

    assert (found.state, set(places(found))) == (KeyState.SPLIT, {"d:0", "d:1"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (A, A.replace("parcel", "packet", 1)),
        (A + " Valid until 31 March 2025.", A + " Valid until 30 June 2026."),
        ("Price: 10 EUR a month", "Price: 12 EUR a month"),
        (PORTUGUESE, PORTUGUESE.replace("semestre", "ano letivo")),
        (JAPANESE, JAPANESE.replace("三十日", "十四日")),
        (THAI, THAI.replace("สามปี", "สองปี")),
    ],
)
def test_a_small_edit_is_changed_and_still_scored(before: str, after: str) -> None:
    found = one(before, {"d:0": after, "d:1": B})

    assert (found.state, list(places(found)), found.usable) == (KeyState.CHANGED, ["d:0"], True)


def test_a_chunk_that_keeps_half_is_changed_but_not_scored() -> None:
    found = one(A, {"d:0": A[: int(len(A) * 0.6)] + C[: len(C) // 2]})

    assert (found.state, found.usable) == (KeyState.CHANGED, False)
    assert found.kept == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("chunks", [{}, {"d:0": B}, {"d:0": ""}, {"d:1": B, "e:0": C}])
def test_a_text_that_is_nowhere_is_lost(chunks: Mapping[str, str]) -> None:
    found = one(A, chunks)

    assert (found.state, found.places, found.usable) == (KeyState.LOST, (), False)


def test_a_short_text_is_not_found_in_letters_of_a_long_one() -> None:
    assert one("Open 9 to 5", {"d:0": A + B + C, "d:1": PORTUGUESE}).state is KeyState.LOST


def test_a_blank_text_is_only_found_in_a_blank_chunk() -> None:
    assert one(" \n", {"d:0": A}).state is KeyState.LOST
    assert one(" \n", {"d:0": ""}).state is KeyState.LIVE


@pytest.mark.parametrize("text", [PORTUGUESE, JAPANESE, THAI], ids=["pt", "ja", "th"])
def test_any_script_is_found_when_it_moved_merged_or_was_split(text: str) -> None:
    cut = len(text) // 2
    assert one(text, {"d:0": B, "d:1": text}).state is KeyState.MOVED
    assert one(text, {"d:1": f"{C}{text}{B}"}).state is KeyState.MERGED
    assert set(places(one(text, {"d:1": text[:cut], "d:2": text[cut:]}))) == {"d:1", "d:2"}


def test_a_text_that_repeats_a_line_is_covered_once_by_each_piece() -> None:
    table = "".join(f"| {word} | yes | the same remark in every line of it |\n" for word in WORDS)
    cut = len(table) // 2
    found = one(table, {"d:0": table[:cut], "d:1": table[cut:]})

    assert found.state is KeyState.SPLIT
    assert sum(place.share for place in found.places) == pytest.approx(1, abs=0.05)


def test_a_thousand_texts_with_the_same_header_find_their_own_chunks() -> None:
    header = "Company handbook, chapter on the household appliances: "
    texts = {f"d{n}:0": header + sentence(n, 12) for n in range(1000)}
    moved = {f"d{n}:1": header + sentence(n, 12) for n in range(1000)}

    found = find(texts, moved)

    assert {key: places(each) for key, each in found.items()} == {
        f"d{n}:0": {f"d{n}:1": 1} for n in range(1000)
    }


@given(
    cuts=st.lists(st.integers(20, 400), min_size=1, max_size=8),
    overlap=st.integers(0, 15),
)
def test_chunks_of_any_size_hold_what_is_said_of_them(cuts: list[int], overlap: int) -> None:
    """A chunk that is proposed holds the share that is said, and no larger piece is left out."""
    text = "".join((B + A + C).split())
    first, length = len("".join(B.split())), len("".join(A.split()))
    chunks, shares, start = {}, {}, 0
    for number, size in enumerate([*cuts, len(text)]):
        begin, end = max(0, start - overlap), min(len(text), start + size)
        if begin < end:
            chunks[f"d:{number + 5}"] = text[begin:end]
            held = min(end, first + length) - max(begin, first)
            shares[f"d:{number + 5}"] = max(0, held) / length
        start = end

    found = one(A, chunks)

    whole = {key for key, share in shares.items() if share == 1}
    if whole:
        assert set(places(found)) == whole
        return
    for place in found.places:
        assert place.share == pytest.approx(shares[place.key], abs=0.02)
    if found.state is KeyState.SPLIT:
        needed = {key for key, share in shares.items() if share > PIECE + 0.02}
        assert needed <= set(places(found))
