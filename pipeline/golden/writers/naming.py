"""Ids of questions in formats that need one for each."""

from collections.abc import Container


def name_of(number: int, external_id: str | None, taken: Container[str] = ()) -> str:
    """Return a question's external id, else its number in recallwatch.

    Where another question has that number as its external id, underscores follow it. `taken` holds
    the external ids for which this matters (`db.exporting.taken_names`): names hang on nothing
    else, so that every export of the same questions gives the same ones.
    """
    if external_id is not None:
        return external_id
    name = str(number)
    while name in taken:
        name += "_"
    return name
