"""Values as text files state them: grades and flags. Raises InputError without a place."""

import re

from pipeline.errors import InputError
from pipeline.text import quoted

# A grade of three digits is already unheard of; 2.0 is how tables of numbers write 2.
_GRADE = re.compile(r"([-+]?[0-9]{1,10})(?:\.0*)?")

# Excel writes the words of its own language.
_TRUE = frozenset({"true", "t", "yes", "y", "1", "wahr", "vrai", "verdadeiro", "verdadero", "vero"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "falsch", "faux", "falso"})


def grade_from(text: str) -> int:
    """Return a grade: an integer, which may be written as 2.0. The record checks its size."""
    found = _GRADE.fullmatch(text.strip())
    if found is None:
        shown = quoted(text.strip()) if text.strip() else "empty"
        raise InputError(
            f"the grade is {shown}: an integer is needed (1 or more: relevant; 0 or less: judged"
            " not relevant)"
        )
    return int(found[1])


def flag_from(name: str, text: str) -> bool:
    """Return what a cell says in field `name`: TRUE or FALSE, as Excel and people write them."""
    word = text.strip().casefold()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise InputError(f"{name} is {quoted(text)}: TRUE or FALSE is needed")
