"""Each kind of wrong setting: one line, with the file or variable, the key, and what is allowed."""

from pathlib import Path

import pytest

from pipeline.errors import SettingsError
from pipeline.settings_loading import load_settings

FILE = "recallwatch.toml"
TOP = (
    "database_url, corpus_url, redis_url, allow_no_password, state_dir, python_folder, "
    "schedule, corpus, "
    "embedding, eval, generation, gate, "
    "queue, alerts, log, strategies, models"
)
EVAL = (
    "set, strategies, k, level, cutoffs, relevance_threshold, look_depth, store_stages, "
    "latency_sample, shard_size, exact_budget"
)
KINDS = "vector, fulltext, trigram, hybrid, sql, http, python, rerank"
VECTOR = (
    "tenant, where, min_score, kind, distance, cast, ef_search, raise_ef_search, iterative_scan, "
    "max_scan_tuples, scan_mem_multiplier, probes, max_probes, exact, exact_below, exact_memory, "
    "questions_per_statement"
)
POSTGRES = "must be a URL that starts with postgresql://, postgres:// or postgresql+psycopg://"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def faults(text: str = "") -> str:
    Path(FILE).write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # Integers
        ("[eval]\nk = 0", "eval.k: must be an integer from 1 to 1000, not 0"),
        ("[eval]\nk = 10000", "eval.k: must be an integer from 1 to 1000, not 10000"),
        ('[eval]\nk = "5"', 'eval.k: must be an integer from 1 to 1000, not "5"'),
        ("[eval]\nk = true", "eval.k: must be an integer from 1 to 1000, not true"),
        ("[eval]\nk = 5.0", "eval.k: must be an integer from 1 to 1000, not 5.0"),
        ("[queue]\ndeadline = 0", "queue.deadline: must be an integer of at least 1, not 0"),
        (
            "[embedding]\ndimensions = 0",
            "embedding.dimensions: must be an integer from 1 to 16000, not 0",
        ),
        # Numbers
        ("[gate]\nmax_drop = 2", "gate.max_drop: must be a number from 0 to 1, not 2"),
        ("[gate]\nmax_drop = nan", "gate.max_drop: must be a number from 0 to 1, not NaN"),
        (
            "[embedding]\ntimeout = 0",
            "embedding.timeout: must be a number above 0, at most 120, not 0",
        ),
        (
            "[strategies.hybrid]\narms = { vector = -1 }",
            "strategies.hybrid.arms.vector: must be a number above 0, not -1",
        ),
        # Choices
        ('[eval]\nlevel = "doc"', 'eval.level: must be one of chunk, document, not "doc"'),
        (
            '[log]\nlevel = "trace"',
            'log.level: must be one of debug, info, warning, error, not "trace"',
        ),
        # Booleans and strings
        (
            '[strategies.vector]\nexact = "yes"',
            'strategies.vector.exact: must be true or false, not "yes"',
        ),
        (
            "[corpus]\ndocument_id = 5",
            "corpus.document_id: must be a string of 1 to 63 characters, not 5",
        ),
        ("[corpus]\ntable = 5", "corpus.table: must be a string, not 5"),
        (
            "[eval]\nset = 2026-01-01",
            "eval.set: must be a string of 1 to 100 characters, not 2026-01-01",
        ),
        # Lists
        (
            '[eval]\ncutoffs = [1, "a"]',
            'eval.cutoffs[1]: must be an integer from 1 to 1000, not "a"',
        ),
        (
            "[eval]\ncutoffs = 5",
            "eval.cutoffs: must be a list, each an integer from 1 to 1000, not 5",
        ),
        (
            "[eval]\nstrategies = []",
            "eval.strategies: must be a list of at least one item, each a string, not []",
        ),
        (
            '[gate]\nmetrics = ["recal"]',
            'gate.metrics[0]: must be one of hit, recall, precision, mrr, map, ndcg, not "recal"',
        ),
        # Tables
        ("eval = 5", "eval: must be a table, not 5"),
        ("[strategies]\nmine = 5", "strategies.mine: must be a table, not 5"),
        (
            "[strategies.hybrid]\narms = {}",
            "strategies.hybrid.arms: must be a table of at least one key, not {}",
        ),
        # Unknown keys
        ("[evl]\nk = 1", f"evl: unknown key; did you mean eval? (allowed: {TOP})"),
        ("k = 1", f"k: unknown key; did you mean eval.k? (allowed: {TOP})"),
        (
            "[eval]\ncutof = [1]",
            f"eval.cutof: unknown key; did you mean cutoffs? (allowed: {EVAL})",
        ),
        ("[eval]\nzzz = 1", f"eval.zzz: unknown key (allowed: {EVAL})"),
        (
            "[strategies.vector]\nef_serch = 1",
            f"strategies.vector.ef_serch: unknown key; did you mean ef_search? (allowed: {VECTOR})",
        ),
        (
            '[strategies.mine]\nkind = "vector"\nrrf_k = 1',
            f"strategies.mine.rrf_k: unknown key (allowed: {VECTOR})",
        ),
        # pydantic-settings' own options are no settings
        ('_env_file = ".env"', f"_env_file: unknown key (allowed: {TOP})"),
        ("_cli_parse_args = true", f"_cli_parse_args: unknown key (allowed: {TOP})"),
        # Strategies
        (
            "[strategies.mine]\nef_search = 5",
            f"strategies.mine.kind: must be one of {KINDS}, but it is missing",
        ),
        (
            "[strategies.mine]",
            f"strategies.mine.kind: must be one of {KINDS}, but it is missing",
        ),
        (
            '[strategies.mine]\nkind = "grpc"',
            f'strategies.mine.kind: must be one of {KINDS}, not "grpc"',
        ),
        (
            '[strategies.mine]\nkind = "vector"\nef_search = 0',
            "strategies.mine.ef_search: must be an integer from 1 to 1000, not 0",
        ),
        (
            "[gate]\nfloor = { recal = 0.5 }",
            "gate.floor.recal: must be one of hit, recall, precision, mrr, map, ndcg",
        ),
        (
            '[strategies."a b"]\nkind = "vector"',
            (
                'strategies."a b": a name must be letters, digits, - and _, 100 at most, '
                "the first a letter or digit"
            ),
        ),
        (
            "[strategies.hybrid]\narms = { nope = 1 }",
            "strategies.hybrid: no strategy 'nope'; there are vector, fulltext, hybrid",
        ),
        (
            "[strategies.hybrid]\narms = { hybrid = 1 }",
            "strategies.hybrid: it asks itself in the end: hybrid -> hybrid",
        ),
        (
            '[eval]\nstrategies = ["nope"]',
            "eval.strategies: no strategy 'nope'; there are vector, fulltext, hybrid",
        ),
        # Alert channels
        (
            '[alerts.channels.team]\nkind = "teams"',
            'alerts.channels.team.kind: must be one of slack, webhook, email, not "teams"',
        ),
        (
            '[alerts.channels.team]\nurl_env = "HOOK"',
            "alerts.channels.team.kind: must be one of slack, webhook, email, but it is missing",
        ),
        (
            '[alerts.channels.team]\nkind = "webhook"',
            "alerts.channels.team.url_env: must be a string, but it is missing",
        ),
        (
            '[alerts.channels.team]\nkind = "slack"\nurl = "https://example.org"',
            (
                "alerts.channels.team.url: unknown key; did you mean url_env? (allowed: on, rules,"
                " min_severity, kind, url_env, allow_host)"
            ),
        ),
        (
            '[alerts.channels.team]\nkind = "slack"\non = ["regresed"]',
            (
                "alerts.channels.team.on[0]: must be one of regressed, unmeasured, recovered,"
                ' golden_stale, not "regresed"'
            ),
        ),
        (
            '[alerts.channels."a b"]\nkind = "slack"',
            (
                'alerts.channels."a b": a name must be letters, digits, - and _, 100 at most, '
                "the first a letter or digit"
            ),
        ),
        (
            (
                '[alerts.channels.email]\nkind = "email"\nhost = "mail.example.org"\n'
                'security = "none"\nsender = "a@example.org"\nrecipients = ["b@example.org"]'
            ),
            ('alerts.channels.email: security "none" is only for a mail server on this machine'),
        ),
        # Rules that hold between keys
        (
            '[embedding]\nprovider = "openai"',
            'embedding: model is required with provider "openai", as text-embedding-3-small',
        ),
        (
            '[embedding]\nmodel = "mine"',
            'embedding: model must be unset with provider "local": it has one model',
        ),
        # URLs and folders
        ('database_url = "mysql://h/d"', f"database_url: {POSTGRES}, not mysql://"),
        ('corpus_url = "host=h dbname=d"', f"corpus_url: {POSTGRES}"),
        (
            'redis_url = "http://h"',
            "redis_url: must be a URL that starts with redis://, rediss:// or unix://, not http://",
        ),
        (
            '[embedding]\nbase_url = "localhost:8080"',
            "embedding.base_url: must be a URL that starts with https:// or http://",
        ),
        ('state_dir = "."', "state_dir: must be a folder of its own, as .recallwatch"),
        ('state_dir = "~nobody-here/x"', "state_dir: no home folder is known for ~nobody-here/x"),
        # TOML
        ("[eval\nk = 1", "line 1, column 6: Expected ']' at the end of a table declaration"),
        ("[eval]\nk = 1\nk = 2\n\n", "line 3, column 6: Cannot overwrite a value"),
        ('x = "abc', "end of document: Unterminated string"),
    ],
)
def test_a_fault_in_the_file_is_one_exact_line(text: str, line: str) -> None:
    assert faults(text) == f"{FILE}: {line}"


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        (
            "RECALLWATCH_EVAL__K",
            "abc",
            'eval.k: must be an integer from 1 to 1000, not "abc"',
        ),
        ("RECALLWATCH_EVAL__K", "0", "eval.k: must be an integer from 1 to 1000, not 0"),
        (
            "RECALLWATCH_EVAL__CUTOFFS",
            "1,x",
            'eval.cutoffs[1]: must be an integer from 1 to 1000, not "x"',
        ),
        (
            "RECALLWATCH_EVAL__CUTOFFS",
            "[1,",
            'eval.cutoffs: must be a list, each an integer from 1 to 1000, not "[1,"',
        ),
        ("RECALLWATCH_EVAL", "abc", 'eval: must be a table, not "abc"'),
        (
            "RECALLWATCH_STRATEGIES__VECTOR__EXACT",
            "maybe",
            'strategies.vector.exact: must be true or false, not "maybe"',
        ),
        (
            "RECALLWATCH_STRATEGIES__MINE__EF_SEARCH",
            "5",
            f"strategies.mine.kind: must be one of {KINDS}, but it is missing",
        ),
        (
            "RECALLWATCH_EVAL__KK",
            "5",
            f"eval.kk: unknown key; did you mean k? (allowed: {EVAL})",
        ),
        ("RECALLWATCH_EVAL_K", "5", "no such setting; did you mean RECALLWATCH_EVAL__K?"),
        ("RECALLWATCH_STATEDIR", "x", "no such setting; did you mean RECALLWATCH_STATE_DIR?"),
        (
            "RECALLWATCH_FOO",
            "5",
            (
                "no such setting; allowed: RECALLWATCH_<SECTION>__<KEY>, "
                "as `recallwatch config show` lists them"
            ),
        ),
        ("DATABASE_URL", "sqlite://x", f"database_url: {POSTGRES}, not sqlite://"),
        (
            "REDIS_URL",
            "localhost",
            "redis_url: must be a URL that starts with redis://, rediss:// or unix://",
        ),
    ],
)
def test_a_fault_in_the_environment_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, line: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert faults() == f"environment {variable}: {line}"


@pytest.mark.parametrize(
    "key",
    [
        "openai_api_key", "voyage_api_key", "cohere_api_key", "tei_api_key", "anthropic_api_key",
        "slack_webhook_url",
    ],
)  # fmt: skip
def test_a_key_in_the_file_is_refused_and_not_shown(key: str) -> None:
    message = faults(f'{key} = "canary"')
    assert message == (
        f"{FILE}: {key}: only from the environment ({key.upper()}), as files get committed"
    )


@pytest.mark.parametrize(
    "text",
    [
        'database_url = "mysql://user:canary@h/d"',
        'database_url = ["canary"]',
        'redis_url = "canary"',
        'redis_url = { canary = "canary" }',
    ],
)
def test_a_wrong_url_is_not_shown_beyond_its_scheme(text: str) -> None:
    assert "canary" not in faults(text)


@pytest.mark.parametrize("variable", ["DATABASE_URL", "SLACK_WEBHOOK_URL"])
def test_a_wrong_secret_in_the_environment_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "canary")
    assert "canary" not in faults()


def test_all_faults_of_file_and_environment_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RECALLWATCH_GATE__MAX_DROP", "x")
    monkeypatch.setenv("RECALLWATCH_ZZZ", "1")
    lines = faults("zzz = 1\n[eval]\nk = 0\n").splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        FILE,
        "environment RECALLWATCH_ZZZ",
        FILE,
        "environment RECALLWATCH_GATE__MAX_DROP",
    ]


def test_a_rule_between_keys_names_every_source_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLWATCH_EMBEDDING__TIMEOUT", "5")
    assert faults('[embedding]\nprovider = "openai"').startswith(
        f"{FILE} and environment RECALLWATCH_EMBEDDING__TIMEOUT: embedding: model is required"
    )


def test_a_long_wrong_value_is_cut() -> None:
    message = faults(f'[eval]\nlevel = "{"x" * 500}"')
    assert len(message) < 150
    assert message.endswith("...")


def test_a_wrong_value_cannot_send_escape_codes() -> None:
    assert "\x1b" not in faults('[eval]\nlevel = "\\u001b[2J"')


def test_a_wrong_key_cannot_send_escape_codes_or_break_the_line() -> None:
    message = faults('"\\u001b[2J\\n" = 1')
    assert message.startswith(f'{FILE}: "\\u001b[2J\\n": unknown key')


def test_a_file_that_is_not_utf8_is_named_with_the_byte() -> None:
    Path(FILE).write_bytes(b"[eval]\n# caf\xe9\n")
    with pytest.raises(SettingsError, match=r"^recallwatch\.toml: not UTF-8 text \(byte 13\)$"):
        load_settings()
