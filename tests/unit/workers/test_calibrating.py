"""What may be calibrated, told from the settings alone."""

import pytest

from pipeline.corpus.settings import CorpusSettings
from pipeline.errors import UsageError
from pipeline.settings import EvalSettings, Settings
from pipeline.types import Level
from workers.calibrating import OUTCOMES, choose
from workers.enqueue import Request

FOREIGN = CorpusSettings(table="app.docs")
STAGING = CorpusSettings(table="app.docs", staging=True)
WITH_EXACT = {"vector": {"ef_search": 40}, "brute": {"kind": "vector", "exact": True}}


def settings(corpus: CorpusSettings | None = None) -> Settings:
    return Settings.model_validate(
        {
            "corpus": corpus or CorpusSettings(),
            "eval": EvalSettings(set="faq", k=7, level=Level.DOCUMENT),
            "strategies": WITH_EXACT,
        }
    )


def test_everything_comes_from_the_settings_where_nothing_is_asked_for() -> None:
    choice = choose(settings(FOREIGN), Request(), reindex=False)

    assert choice.wanted.strategies == ["vector", "fulltext", "hybrid"]
    assert (choice.wanted.set_name, choice.wanted.k, choice.wanted.level) == (
        ("faq", 7, Level.DOCUMENT)
    )
    assert choice.deterministic == []


def test_a_foreign_tables_index_is_not_rebuilt() -> None:
    with pytest.raises(UsageError, match=r"app\.docs.*set staging = true in \[corpus\]"):
        choose(settings(FOREIGN), Request(), reindex=True)


@pytest.mark.parametrize("corpus", [STAGING, CorpusSettings()])
def test_the_index_of_a_staging_or_managed_table_may_be_rebuilt(corpus: CorpusSettings) -> None:
    choice = choose(settings(corpus), Request(strategies=["vector"]), reindex=True)

    assert choice.reindex
    assert choice.wanted.strategies == ["vector"]


def test_strategies_without_an_index_are_left_out_of_a_rebuild() -> None:
    request = Request(strategies=["fulltext", "vector", "brute", "hybrid"])

    choice = choose(settings(), request, reindex=True)

    assert choice.wanted.strategies == ["vector", "hybrid"]
    assert choice.deterministic == ["fulltext", "brute"]


@pytest.mark.parametrize("name", ["fulltext", "brute"])
def test_a_rebuild_for_deterministic_strategies_alone_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^{name}: .*deterministic: needs no calibration"):
        choose(settings(), Request(strategies=[name]), reindex=True)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(strategies=["nope"]), "unknown strategy 'nope'"),
        (Request(k=0), "k must be from 1"),
        (Request(level="page"), "level must be one of chunk, document"),
    ],
)
def test_a_wrong_request_is_told_before_any_server_starts(request_: Request, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose(settings(), request_, reindex=False)


def test_hit_comes_first_among_what_is_measured() -> None:
    """`pipeline.verdict.calibration.figures` takes the first as hit."""
    assert OUTCOMES[0] == "hit"
