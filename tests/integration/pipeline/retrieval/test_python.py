"""The owner's own Python: every shape of it, and every way in which it goes wrong."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from pipeline.errors import CorpusError, PermanentError, TransientError
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.python import PythonRetriever
from pipeline.retrieval.strategies import PythonStrategy
from pipeline.types import Failure, Ranking
from tests.integration.pipeline.retrieval.corpora import questions, ranked

OWN = '''
import asyncio
import signal
from dataclasses import dataclass

from pipeline.errors import TransientError

CALLS = []
UNDER_WAY = [0, 0]


class TimeIsUp(Exception):
    """What a worker's time limit raises in the midst of anything."""


@dataclass
class Hit:
    key: str
    score: float


def keys(question, k):
    CALLS.append(question)
    return [f"{question}:{n}" for n in range(k)]


def pairs(question: str, k: int, tenant=None, language=None):
    return [(f"{question}/{tenant}/{language}", 0.5)]


def mappings(question, **rest):
    return [{"key": question + ":" + str(sorted(rest)), "score": 2}]


async def objects(question, k):
    UNDER_WAY[0] += 1
    UNDER_WAY[1] = max(UNDER_WAY)
    await asyncio.sleep(0.01)
    UNDER_WAY[0] -= 1
    return [Hit(question, 1.0)]


def many(questions, k, tenants):
    CALLS.append(list(questions))
    if "poison" in questions:
        raise ValueError("poison\\nin a batch")
    return [[f"{q}:{t}"] for q, t in zip(questions, tenants)]


async def many_async(questions):
    return [[q] if q != "bad" else LookupError("none") for q in questions]


def near(vector, k):
    return [f"v:{vector.argmax()}"]


def near_all(vectors, questions):
    return [[f"v:{row}"] for row in vectors.argmax(axis=1)]


def breaks(question):
    if question == "key":
        return {}["missing"]
    if question == "stop":
        raise TimeIsUp
    if question == "later":
        raise TransientError("the index is being built")
    return ["fine"]


async def slow(question):
    await asyncio.sleep(30 if question == "slow" else 0)
    return ["fine"]


def returns(question):
    return RETURNED[int(question)]


RETURNED = [None, "a:0", {"key": "a"}, [1], [("a", "high")], [("a",)], [["a", 1.0, 2]],
            [("a", 1.0), "b"], [""], 7, [None], [("a", float("nan"))], ["a\\0"], ["a\\ud800"]]


class Search:
    def __init__(self, prefix, fail=False):
        if fail:
            raise RuntimeError("no connection\\nto the index")
        self.prefix = prefix

    def search(self, question, k):
        return [f"{self.prefix}:{question}"]


class Callable:
    async def __call__(self, question):
        return [question]


class Client:
    made = 0

    def __init__(self):
        Client.made += 1
        self.loop = None

    async def search(self, question):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop() or self.loop.is_closed():
            raise RuntimeError("Event loop is closed")
        return [question]


async def many_slow(questions):
    await asyncio.sleep(30 if "slow" in questions else 0)
    return [[question] for question in questions]


def generated(question):
    yield question
    if question == "breaks":
        raise ValueError("in the midst")


def without_end(question):
    while True:
        yield question


def pages(questions):
    for question in questions:
        if question == "breaks":
            raise ValueError("page 2")
        yield [question]


async def waits_itself(question):
    raise TimeoutError("no answer from the store")


async def cancels_itself(question):
    if question == "cancelled":
        raise asyncio.CancelledError
    return [question]


STOPPED = []


async def is_stopped(question):
    if question == "stop":
        raise TimeIsUp
    try:
        if question == "alarm":
            signal.setitimer(signal.ITIMER_REAL, 0.1)
        await asyncio.sleep(30)
    finally:
        STOPPED.append(question)


class Empty:
    pass


def odd(question, index):
    return []


def positional(question, /):
    return []


NUMBER = 7
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "own_search.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("import nothing_of_the_kind\n")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in ("own_search", "broken"):
        sys.modules.pop(name, None)


def retriever(folder: Path, name: str, **settings: object) -> PythonRetriever:
    strategy = PythonStrategy.model_validate({"path": f"own_search:{name}"} | settings)
    return PythonRetriever("mine", strategy, PythonHost(folder))


def own(name: str) -> Any:  # noqa: ANN401 - a module that no tool knows
    return getattr(sys.modules["own_search"], name)


def found(answers: list[Ranking | Failure]) -> list[list[str]]:
    return [list(answer.keys) for answer in ranked(answers)]


def reasons(answers: list[Ranking | Failure]) -> list[str | None]:
    return [answer.reason if isinstance(answer, Failure) else None for answer in answers]


def test_a_function_is_called_for_each_question_and_cut_at_k(folder: Path) -> None:
    answers = retriever(folder, "keys").retrieve(questions(texts=["a", "b"]), 2)
    assert found(answers) == [["a:0", "a:1"], ["b:0", "b:1"]]
    assert list(ranked(answers)[0].scores) == [1, 1 / 2]
    assert own("CALLS") == ["a", "b"]


def test_what_it_takes_by_name_it_gets(folder: Path) -> None:
    batch = questions(texts=["a"], tenants=["acme"], languages=["pt"])
    assert found(retriever(folder, "pairs").retrieve(batch, 5)) == [["a/acme/pt"]]
    ignoring = retriever(folder, "pairs", tenant="ignore")
    assert found(ignoring.retrieve(batch, 5)) == [["a/None/pt"]]
    everything = "a:['k', 'language', 'tenant', 'vector']"
    assert found(retriever(folder, "mappings").retrieve(batch, 5)) == [[everything]]


def test_coroutines_are_under_way_together_within_bounds(folder: Path) -> None:
    texts = [str(n) for n in range(30)]
    answers = retriever(folder, "objects", concurrency=4).retrieve(questions(texts=texts), 5)
    assert found(answers) == [[text] for text in texts]
    assert own("UNDER_WAY") == [0, 4]


def test_one_that_takes_questions_is_called_once_for_all(folder: Path) -> None:
    batch = questions(texts=["a", "b"], tenants=["x", None])
    assert found(retriever(folder, "many").retrieve(batch, 5)) == [["a:x"], ["b:None"]]
    assert own("CALLS") == [["a", "b"]]


def test_a_batch_that_raises_is_asked_one_by_one(folder: Path) -> None:
    answers = retriever(folder, "many").retrieve(questions(texts=["a", "poison", "b"]), 5)
    assert reasons(answers) == [None, "ValueError: poison in a batch", None]
    assert len(own("CALLS")) == 4


def test_an_exception_in_the_place_of_a_list_is_that_questions_failure(folder: Path) -> None:
    answers = retriever(folder, "many_async").retrieve(questions(texts=["a", "bad"]), 5)
    assert reasons(answers) == [None, "LookupError: none"]


def test_vectors_are_given_to_those_that_take_them(folder: Path) -> None:
    batch = questions(vectors=np.eye(3, dtype=np.float32))
    for name in ("near", "near_all"):
        asked = retriever(folder, name, vectors=True)
        assert asked.needs_vectors
        assert found(asked.retrieve(batch, 5)) == [["v:0"], ["v:1"], ["v:2"]]


def test_what_it_raises_is_the_questions_failure_but_a_time_limit_or_our_own_is_not(
    folder: Path,
) -> None:
    own_code = retriever(folder, "breaks")
    answers = own_code.retrieve(questions(texts=["a", "key", "b"]), 5)
    assert reasons(answers) == [None, "KeyError: 'missing'", None]
    with pytest.raises(TransientError, match="the index is being built"):
        own_code.retrieve(questions(texts=["a", "later"]), 5)
    strategy = PythonStrategy(path="own_search:breaks")
    limited = PythonRetriever("mine", strategy, PythonHost(folder, (own("TimeIsUp"),)))
    with pytest.raises(own("TimeIsUp")):
        limited.retrieve(questions(texts=["a", "stop"]), 5)


def test_a_coroutine_that_does_not_return_fails_alone(folder: Path) -> None:
    answers = retriever(folder, "slow", timeout=0.2).retrieve(questions(texts=["a", "slow"]), 5)
    assert reasons(answers) == [None, "own_search:slow did not return within 0.2 s"]


def test_what_is_no_list_of_results_is_a_failure_not_a_miss(folder: Path) -> None:
    asked = retriever(folder, "returns")
    answers = asked.retrieve(questions(texts=[str(n) for n in range(14)]), 5)
    assert all(isinstance(answer, Failure) for answer in answers)
    assert reasons(answers)[:2] == [
        "own_search:returns returned NoneType, not a list of results",
        "own_search:returns returned str, not a list of results",
    ]
    assert reasons(answers)[4] == "own_search:returns returned a score that is no number, for a"
    assert "for some of the results only" in str(reasons(answers)[7])


def test_a_class_is_made_once_with_its_settings(folder: Path) -> None:
    asked = retriever(folder, "Search", settings={"prefix": "p"})
    assert found(asked.retrieve(questions(texts=["a", "b"]), 5)) == [["p:a"], ["p:b"]]
    assert found(retriever(folder, "Callable").retrieve(questions(texts=["a"]), 5)) == [["a"]]


@pytest.mark.parametrize(("name", "settings", "said"), [
    ("Nothing", {}, "cannot be imported (AttributeError: module 'own_search' has no attribute"),
    ("Search", {}, "cannot be made (TypeError: "),
    ("Search", {"settings": {"prefix": "a", "fail": True}},
     "cannot be made (RuntimeError: no connection to the index)"),
    ("keys", {"settings": {"prefix": "a"}}, "is no class: only a class takes settings"),
    ("Empty", {}, "has no method search, and cannot be called itself"),
    ("NUMBER", {}, "is neither a class nor a function"),
    ("odd", {}, "takes index, which there is not; it may take by name: k, language"),
    ("positional", {}, "takes question, which there is not"),
    ("keys", {"vectors": True}, "takes no vectors, but vectors = true asks for them"),
])  # fmt: skip
def test_code_that_cannot_be_used_stops_the_run_saying_why(
    folder: Path, name: str, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(PermanentError) as raised:
        retriever(folder, name, **settings)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("path", "said"), [
    ("broken:search", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
    ("no_such_module_of_mine:search", "No module named 'no_such_module_of_mine'"),
    ("db.search:find", "; db is recallwatch's own: name yours otherwise"),
])  # fmt: skip
def test_a_module_that_cannot_be_imported_is_named_with_the_place(
    folder: Path, path: str, said: str
) -> None:
    with pytest.raises(PermanentError) as raised:
        PythonRetriever("mine", PythonStrategy(path=path), PythonHost(folder))
    assert said in str(raised.value)
    assert str(folder) in str(raised.value)


def test_nothing_in_the_folder_hides_what_is_installed(folder: Path) -> None:
    (folder / "numpy.py").write_text("raise RuntimeError")
    retriever(folder, "keys")
    assert sys.path[-1] == str(folder)


def test_one_that_takes_no_tenant_is_never_asked_for_one(folder: Path) -> None:
    batch = questions(texts=["a", "b"], tenants=[None, "acme"])
    with pytest.raises(CorpusError, match="has the tenant 'acme', but own_search:keys of strategy"):
        retriever(folder, "keys").retrieve(batch, 5)
    assert own("CALLS") == []
    assert len(retriever(folder, "keys", tenant="ignore").retrieve(batch, 5)) == 2


def test_a_client_of_an_event_loop_is_kept_between_calls(folder: Path) -> None:
    asked = retriever(folder, "Client")
    for _ in range(2):
        assert found(asked.retrieve(questions(texts=["a", "b"]), 5)) == [["a"], ["b"]]


def test_an_object_is_made_once_for_all_retrievers_of_a_process_with_its_settings(
    folder: Path,
) -> None:
    host = PythonHost(folder)
    for _ in range(2):
        asked = PythonRetriever("mine", PythonStrategy(path="own_search:Client"), host)
        assert found(asked.retrieve(questions(texts=["a"]), 5)) == [["a"]]
    assert own("Client").made == 1
    prefixes = [
        PythonRetriever(name, PythonStrategy(path="own_search:Search", settings=settings), host)
        for name, settings in (("one", {"prefix": "p"}), ("other", {"prefix": "q"}))
    ]
    assert [found(each.retrieve(questions(texts=["a"]), 5)) for each in prefixes] == [
        [["p:a"]],
        [["q:a"]],
    ]


def test_a_generator_is_read_as_far_as_is_asked_for_and_may_raise(folder: Path) -> None:
    answers = retriever(folder, "generated").retrieve(questions(texts=["a", "breaks"]), 5)
    assert reasons(answers) == [None, "ValueError: in the midst"]
    endless = retriever(folder, "without_end").retrieve(questions(texts=["a"]), 3)
    assert found(endless) == [["a", "a", "a"]]
    answers = retriever(folder, "pages").retrieve(questions(texts=["a", "breaks", "b"]), 5)
    assert reasons(answers) == [None, "ValueError: page 2", None]


def test_a_call_for_all_that_does_not_return_in_time_is_made_for_each(folder: Path) -> None:
    slow = retriever(folder, "many_slow", timeout=0.2)
    answers = slow.retrieve(questions(texts=["a", "slow", "b"]), 5)
    assert reasons(answers) == [None, "own_search:many_slow did not return within 0.2 s", None]


def test_its_own_time_limits_and_cancellations_are_told_from_ours(folder: Path) -> None:
    answers = retriever(folder, "waits_itself").retrieve(questions(texts=["a"]), 5)
    assert reasons(answers) == ["TimeoutError: no answer from the store"]
    answers = retriever(folder, "cancels_itself").retrieve(questions(texts=["a", "cancelled"]), 5)
    assert reasons(answers) == [None, "own_search:cancels_itself was cancelled"]


@pytest.mark.parametrize("last", ["stop", "alarm"])
def test_nothing_goes_on_after_a_time_limit_from_outside(folder: Path, last: str) -> None:
    retriever(folder, "is_stopped")
    time_is_up = own("TimeIsUp")

    def interrupt(*_: object) -> None:
        raise time_is_up

    before = signal.signal(signal.SIGALRM, interrupt)
    strategy = PythonStrategy(path="own_search:is_stopped")
    asked = PythonRetriever("mine", strategy, PythonHost(folder, (time_is_up,)))
    try:
        with pytest.raises(time_is_up):
            asked.retrieve(questions(texts=["a", "b", last]), 5)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert {"a", "b"} <= set(own("STOPPED"))


def test_no_event_loop_is_left_behind(folder: Path) -> None:
    retriever(folder, "objects").retrieve(questions(texts=["a"]), 5)
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


@pytest.mark.parametrize("path", ["own_search", "own search:x", ":x", "a.b:", "a:b()", "../a:b"])
def test_a_path_that_names_nothing_is_refused_with_the_settings(path: str) -> None:
    with pytest.raises(ValidationError):
        PythonStrategy(path=path)
