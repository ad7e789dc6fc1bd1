import numpy as np
import pytest

from cli.experiment import conclusion, experiment_record, experiment_tables
from cli.output import make_console, to_json
from pipeline.experiment import Candidate, Experiment, compare


def _experiment(gains: int, n: int = 200) -> Experiment:
    """Return an experiment in which candidate b finds what a misses for so many of n questions."""
    before = np.zeros(n)
    after = before.copy()
    after[:gains] = 1.0
    return compare([
        Candidate("a", {"ndcg@10": before, "recall@10": before}, {"price": "$0.02", "dims": 256}),
        Candidate("b", {"ndcg@10": after, "recall@10": after}, {"price": "$0.13"}),
    ])  # fmt: skip


def _printed(experiment: Experiment, capsys: pytest.CaptureFixture[str]) -> str:
    make_console().print(experiment_tables(experiment))
    return capsys.readouterr().out


def test_the_table_shows_means_differences_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _printed(_experiment(50), capsys).splitlines()

    cells = [line.split() for line in lines]
    assert ["a", "0.0000", "-", "-", "-", "-", "-"] in cells
    [b] = [row for row in cells if row[:4] == ["b", "*", "0.2500", "+0.2500"]]
    assert b[-2:] == ["50", "0"]
    assert ["recall@10", "price", "dims"] in cells
    assert ["a", "0.0000", "$0.02", "256"] in cells
    assert ["b", "*", "0.2500", "$0.13", "-"] in cells


def test_the_table_fits_eighty_columns_with_long_names(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"ndcg_exp@1000": np.linspace(0, 1, 9), "recall@10": np.ones(9)}
    names = ["openai:text-embedding-3-large@256", "a name " * 20]
    found = compare([Candidate(name, values, {"price": "$0.02"}) for name in names])

    lines = _printed(found, capsys).splitlines()

    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_the_conclusion_names_what_is_better_and_by_how_much() -> None:
    assert conclusion(_experiment(50)).startswith("b is better than a: ndcg@10 +0.2500 (+0.")


def test_the_conclusion_says_where_a_lead_may_be_luck() -> None:
    said = conclusion(_experiment(1))

    assert "may be luck" in said
    assert "+0.0050" in said


def test_the_conclusion_says_where_the_baseline_stands() -> None:
    assert conclusion(_experiment(0)) == "nothing is better than a over these 200 questions"


def test_the_record_is_json_with_everything_at_full_precision() -> None:
    record = experiment_record(_experiment(1, n=3))

    assert to_json(record)
    assert (record["baseline"], record["best"], record["questions"]) == ("a", None, 3)
    assert record["rows"][1]["means"]["ndcg@10"] == 1 / 3
    assert record["rows"][1]["differences"]["ndcg@10"]["better"] == 1
    assert record["rows"][0] == {
        "name": "a",
        "means": {"ndcg@10": 0.0, "recall@10": 0.0},
        "differences": {},
        "facts": {"price": "$0.02", "dims": 256},
    }
