"""What a request costs, and that what was paid for is kept."""

import math

import pytest

from pipeline.errors import PermanentError, TransientError
from tests.integration.pipeline.embedding.conftest import TEXTS, Build
from tests.loopback.openai_server import (
    OpenAIServer,
    Reply,
    hang,
    raw,
    refuse,
    tokens_of,
    vectors,
    vectors_for,
)


def test_vectors_are_handed_over_as_they_come_so_that_a_later_fault_loses_none(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [vectors(), vectors()]
    openai_server.default = refuse(401)
    kept: list[tuple[list[str], bytes]] = []

    with pytest.raises(PermanentError):
        build(max_inputs=2, concurrency=1).embed(
            ["a", "b", "c", "d", "e"],
            keep=lambda texts, found: kept.append((list(texts), found.tobytes())),
        )

    assert kept == [
        (["a", "b"], vectors_for(["a", "b"], 8).tobytes()),
        (["c", "d"], vectors_for(["c", "d"], 8).tobytes()),
    ]


class Purse:
    """A budget that holds so many dollars."""

    def __init__(self, room: float = math.inf) -> None:
        self.room = room
        self.spent = 0.0
        self.most = 0.0

    def reserve(self, cost: float) -> None:
        if self.spent + cost > self.room:
            raise PermanentError("the purse is empty")
        self.spent += cost
        self.most = max(self.most, self.spent)

    def settle(self, reserved: float, cost: float) -> None:
        self.spent += cost - reserved


ONE_A_TOKEN = 1_000_000.0
BOUND, BILLED = len("firstsecondthird"), tokens_of(TEXTS)


def test_a_request_reserves_its_bound_and_costs_what_was_billed(build: Build) -> None:
    purse = Purse()

    build(price=ONE_A_TOKEN).embed(TEXTS, budget=purse)

    assert (purse.most, purse.spent) == (BOUND, BILLED)


def test_a_reply_that_does_not_count_costs_its_bound(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = vectors(tokens=0)
    purse = Purse()

    build(price=ONE_A_TOKEN).embed(TEXTS, budget=purse)

    assert purse.spent == BOUND


@pytest.mark.parametrize(
    ("reply", "lost"),
    [
        (refuse(429, headers={"Retry-After": "0.01"}), 0),
        (refuse(408), 0),
        (refuse(500), BOUND),
        (raw(200, b"{}"), BOUND),
        (raw(200, b'{"data": [', missing=100), BOUND),
        (hang(), BOUND),
    ],
)
def test_a_request_that_is_tried_again_pays_again_where_it_may_have_been_billed(
    openai_server: OpenAIServer, build: Build, reply: Reply, lost: int
) -> None:
    openai_server.script = [reply]
    purse = Purse()

    build(price=ONE_A_TOKEN, timeout=1.0).embed(TEXTS, budget=purse)

    assert purse.spent == lost + BILLED


def test_a_server_that_is_not_there_costs_nothing(build: Build) -> None:
    purse = Purse()

    with pytest.raises(TransientError):
        build(base_url="http://127.0.0.1:1/v1", attempts=2, price=1.0).embed(TEXTS, budget=purse)

    assert purse.spent == 0


def test_nothing_is_sent_that_the_budget_has_no_room_for(
    openai_server: OpenAIServer, build: Build
) -> None:
    with pytest.raises(PermanentError, match="the purse is empty"):
        build(price=ONE_A_TOKEN).embed(TEXTS, budget=Purse(BOUND - 1))

    assert openai_server.requests == []
