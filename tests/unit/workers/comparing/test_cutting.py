from pipeline.chunking.evidence import Letters, Piece
from pipeline.chunking.splitting import Chunking, Span
from workers.comparing.cutting import Cut, cuts_of
from workers.comparing.documents import Document

SENTENCES = "The first sentence is long enough here. The second sentence is as long as that."


def documents(*, cut: bool) -> list[Document]:
    present = [Span(0, 39), Span(40, 79)] if cut else None
    return [
        Document("a", "acme", SENTENCES, present),
        Document("b", None, "Short.", [Span(0, 6)] if cut else None),
    ]


def cuts(*sizes: int, cut: bool = True) -> list[Cut]:
    found = documents(cut=cut)
    letters = [Letters(each.text) for each in found]
    return list(cuts_of([Chunking(size) for size in sizes], found, letters))


def test_what_the_corpus_cut_comes_first() -> None:
    assert [each.name for each in cuts(50, 100)] == ["present", "50", "100"]


def test_a_folder_s_files_are_cut_by_nobody() -> None:
    assert [each.name for each in cuts(50, 100, cut=False)] == ["50", "100"]


def test_chunks_know_their_texts_owners_and_letters() -> None:
    present, halves, whole = cuts(50, 100)

    first, second = SENTENCES[:39], SENTENCES[40:]
    assert present.texts == halves.texts == [first, second, "Short."]
    assert halves.tenants == ["acme", "acme", None]
    # 39 characters with six blanks between them, then 39 with seven.
    assert halves.pieces == [Piece(0, 0, 33), Piece(0, 33, 65), Piece(1, 0, 6)]
    assert whole.texts == [SENTENCES, "Short."]


def test_as_many_chunks_are_asked_for_as_fill_the_budget_were_they_the_shortest() -> None:
    pieces = [Piece(0, 0, 10), Piece(0, 10, 30), Piece(0, 30, 60)]
    cut = Cut("x", [""] * 3, [None] * 3, pieces)

    assert cut.limit(k=1, budget=10) == 1
    assert cut.limit(k=1, budget=11) == 2
    assert cut.limit(k=1, budget=30) == 2
    assert cut.limit(k=1, budget=31) == 3
    assert cut.limit(k=5, budget=10) == 5
