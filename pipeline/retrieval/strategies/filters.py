"""What a search of the corpus table may be limited to, in the settings of its kind."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pipeline.retrieval.named_parameters import outside_quotes
from pipeline.settings_types import Section


def _check_condition(condition: str) -> str:
    """Refuse what would reach beyond its own parentheses, and so lift the tenant's condition.

    All else is PostgreSQL's to refuse: the owner's own words run as they are.
    """
    if not condition.strip():
        raise ValueError("is blank: leave it out to search all chunks")
    if "\0" in condition:
        raise ValueError("holds a NUL character, which PostgreSQL cannot read")
    plain = outside_quotes(condition)
    if ";" in plain:
        raise ValueError("holds a semicolon: it must be one condition, as `published`")
    depth = 0
    for mark in plain:
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if depth < 0:
            raise ValueError("closes a parenthesis that it does not open")
    if depth:
        raise ValueError("opens a parenthesis that it does not close")
    return condition


Condition = Annotated[str, AfterValidator(_check_condition)]


class Filters(Section):
    """Which chunks a search looks at, and which it returns."""

    tenant: Literal["question", "ignore"] = Field(
        "question",
        description="question: a question with a tenant sees that tenant's chunks only; ignore:"
        " every question sees all chunks",
    )
    where: Condition | None = Field(
        None,
        description="SQL condition on the chunks that are searched, as your search has it; the"
        " table's columns may be named with c. before them",
        examples=["published AND c.language = 'en'"],
    )
    min_score: float | None = Field(
        None,
        description="results with a lower score are left out; unset: none are",
        examples=[0.5],
    )

    def whose(self, tenants: Sequence[str | None]) -> Sequence[str | None]:
        """Return the tenants to search within, given those of the questions; None: all chunks."""
        return [None] * len(tenants) if self.tenant == "ignore" else tenants
