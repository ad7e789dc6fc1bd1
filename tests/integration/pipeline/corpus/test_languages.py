from typing import Any

import psycopg

from pipeline.corpus.languages import CONFIGURATIONS, SIMPLE, available_text_configs


def test_the_configurations_are_all_that_postgresql_18_ships(
    conn: psycopg.Connection[Any],
) -> None:
    assert conn.info.server_version // 10_000 == 18
    assert available_text_configs(conn) == CONFIGURATIONS | {SIMPLE}


def test_a_users_own_configuration_is_not_taken_for_a_language(
    conn: psycopg.Connection[Any],
) -> None:
    conn.execute("CREATE TEXT SEARCH CONFIGURATION klingon (COPY = simple)")

    assert "klingon" not in available_text_configs(conn)
