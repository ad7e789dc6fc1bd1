"""Texts in the cells of a CSV file that a spreadsheet may open: kept from running as formulas.

A spreadsheet takes a cell that begins with one of a few characters for a formula, which can call
programs and send data away (OWASP, "CSV Injection"). A leading apostrophe makes it plain text.
"""

import re

_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")  # noqa: RUF001 - the full-width ones too
_GUARD = "'"


def guard(text: str) -> str:
    """Return the text as a cell that no spreadsheet runs; `unguard` gives the text back.

    A text that itself begins with apostrophes and then a formula gets one more, so that no two
    texts have the same cell.
    """
    return _GUARD + text if _FORMULA.match(text) else text


def unguard(cell: str) -> str:
    """Return the text that `guard` made a cell of; any other cell is returned as it is."""
    if cell.startswith(_GUARD) and _FORMULA.match(cell):
        return cell[len(_GUARD) :]
    return cell
