"""Sections of a Markdown page that a benchmark writes between markers of its own."""

import re


def with_section(page: str, name: str, text: str) -> str:
    """Return the page with the section of that name replaced, or added at its end."""
    first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    section = f"{first}\n{text.strip()}\n{last}"
    there = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    if there.search(page):
        return there.sub(lambda _: section, page, count=1)
    return f"{page.rstrip()}\n\n{section}\n"
