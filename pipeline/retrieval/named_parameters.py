"""Named parameters in SQL, as `:question`: found where PostgreSQL's lexer would see a symbol."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# PostgreSQL's lexical rules (SQL Syntax, 4.1): what is quoted or a comment holds no parameter. An E
# before a quote makes backslashes escape; dollar quotes end at their own tag; a cast is `::`, and
# PL/pgSQL's `:=` no parameter either. Block comments nest, which no pattern can say.
_TOKEN = re.compile(
    r"""
    (?P<escaped>\b[eE]'(?:[^'\\]|''|\\.)*'?)
  | (?P<quoted>'(?:[^']|'')*'?)
  | (?P<identifier>"(?:[^"]|"")*"?)
  | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
  | (?P<line>--[^\n]*)
  | (?P<block>/\*)
  | (?P<cast>::|:=)
  | (?P<parameter>:(?P<name>[^\W\d]\w*))
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class NamedParameters:
    """A statement cut at its parameters: `names[i]` stands between `texts[i]` and the next text."""

    texts: Sequence[str]
    names: Sequence[str]

    @classmethod
    def of(cls, statement: str) -> "NamedParameters":
        """Find the parameters of a statement."""
        texts, names, start, at = [], [], 0, 0
        while found := _TOKEN.search(statement, at):
            at = found.end()
            if found["block"]:
                at = _end_of_comment(statement, at)
            elif found["parameter"]:
                texts.append(statement[start : found.start()])
                names.append(found["name"])
                start = at
        return cls((*texts, statement[start:]), tuple(names))

    def written(self, text: Callable[[str], str], name: Callable[[str], str]) -> str:
        """Return the statement with its texts and its parameters written otherwise."""
        pairs = zip(self.texts, (*map(name, self.names), ""), strict=True)
        return "".join(text(one) + parameter for one, parameter in pairs)


def outside_quotes(statement: str) -> str:
    """Return a statement without what it quotes, names in double quotes, and comments."""
    parts, at = [], 0
    while found := _TOKEN.search(statement, at):
        parts.append(statement[at : found.start()])
        at = found.end()
        if found["block"]:
            at = _end_of_comment(statement, at)
        elif found["cast"] or found["parameter"]:
            parts.append(found[0])
    return "".join((*parts, statement[at:]))


def _end_of_comment(statement: str, at: int) -> int:
    """Return where a block comment ends that began before `at`: comments nest."""
    depth = 1
    while depth and (mark := _COMMENT_MARK.search(statement, at)):
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at if not depth else len(statement)
