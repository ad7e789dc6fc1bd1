import pytest

from workers.asking import SPARE, STORE_WAITS, longest_request, store_waits


@pytest.mark.parametrize("lease", [1, 5, 30, 60, 120, 300, 3600])
def test_a_request_and_all_tries_to_store_its_answer_fit_into_a_lease(lease: float) -> None:
    taken = longest_request(lease) + sum(store_waits(lease))

    assert taken <= (1 - SPARE) * lease
    assert longest_request(lease) >= lease / 2


def test_by_the_default_lease_an_answer_is_tried_for_a_minute() -> None:
    assert store_waits(300) == list(STORE_WAITS)
    assert sum(STORE_WAITS) >= 60
