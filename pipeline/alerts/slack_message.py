"""An alert as a Slack message: Block Kit for an incoming webhook.

Whatever others wrote (questions, names, keys, servers' errors) stands in `plain_text` objects,
in which Slack reads no formatting; our own words and metric names stand in `mrkdwn`. Limits, types
and escaping: https://docs.slack.dev/reference/block-kit and
https://docs.slack.dev/messaging/formatting-message-text.
"""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pipeline.alerts import wording
from pipeline.alerts.message import Alert
from pipeline.safe_text import clean

LONGEST_SECTION = 3000
LONGEST_HEADER = 150
MOST_FIELDS = 10
LONGEST_FIELD = 2000
"""Slack's limits, in characters of the text as it is sent (after escaping).

The one of 50 blocks a message needs no guard: there are eleven here at most.
"""

LONGEST_LINE = 500
"""Characters of a line, so that one long question does not push out the others."""

ELLIPSIS = "…"

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# With a word joiner after the @ it looks the same and calls nobody, whatever a client makes of it.
_BROADCAST = re.compile(r"@(?=channel|here|everyone)", re.IGNORECASE)
_JOINER = "\u2060"
_URL_CHARACTERS = "%/:?#[]@!$&'()*+,;=~"

Block = dict[str, Any]


def slack_message(alert: Alert) -> Block:
    """Return the body of the POST: everything the first time, a line when it repeats."""
    blocks = _full(alert) if alert.repeat == 1 else [_plain(wording.summary(alert))]
    return {
        # What a notification shows; the blocks are the message.
        "text": fit(wording.summary(alert), LONGEST_SECTION),
        "blocks": [*blocks, *_link(alert)],
        # Else Slack's servers would fetch any URL in a question.
        "unfurl_links": False,
        "unfurl_media": False,
    }


def fit(text: str, limit: int) -> str:
    """Return the text escaped for Slack and at most `limit` characters long.

    A text that is too long ends in an ellipsis and never within an entity. Lengths count UTF-16
    units, the strictest of the ways in which Slack could count.
    """
    tokens = [_ENTITIES.get(character, character) for character in _call_nobody(text)]
    if sum(map(_width, tokens)) <= limit:
        return "".join(tokens)
    kept, room = [], limit - _width(ELLIPSIS)
    for token in tokens:
        room -= _width(token)
        if room < 0:
            break
        kept.append(token)
    return "".join(kept) + ELLIPSIS


def _call_nobody(text: str) -> str:
    return _BROADCAST.sub(f"@{_JOINER}", text)


def _width(token: str) -> int:
    return sum(2 if ord(character) > 0xFFFF else 1 for character in token)  # noqa: PLR2004 - UTF-16


def _full(alert: Alert) -> list[Block]:
    blocks: list[Block] = [
        {"type": "header", "text": _text(wording.headline(alert), LONGEST_HEADER)}
    ]
    if alert.changes:
        blocks.append(_fields(alert))
    blocks += [
        _list(paragraph.title, paragraph.lines)
        for paragraph in wording.paragraphs(alert)
        if paragraph.title != wording.WHAT_CHANGED  # the fields say it
    ]
    if alert.reproduce:
        blocks.append(_command(wording.command_title(alert), alert.reproduce))
    footer = _text(wording.footer(alert), LONGEST_FIELD)
    return [*blocks, {"type": "context", "elements": [footer]}]


def _fields(alert: Alert) -> Block:
    """Return the metrics side by side, each with its name in bold."""
    fields = []
    for change in wording.changes_at_k(alert)[:MOST_FIELDS]:
        name = fit(wording.one_line(change.metric), LONGEST_HEADER)
        figures = fit(wording.figures(change), LONGEST_HEADER)
        fields.append(_markup(f"*{name}*\n{figures}"))
    return {"type": "section", "fields": fields}


def _list(title: str, lines: Sequence[str]) -> Block:
    cut = (
        line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}{ELLIPSIS}" for line in lines
    )
    return _plain("\n".join([f"{title}:", *(f"• {line}" for line in cut)]))


def _command(title: str, command: str) -> Block:
    """Return the command in a code block, which ends at backticks: one with those stays plain."""
    command = clean(command)
    if "`" in command:
        return _plain(f"{title}: {command}")
    heading = f"*{title}*\n"
    shown = fit(command, LONGEST_SECTION - len(f"{heading}``````"))
    return {"type": "section", "text": _markup(f"{heading}```{shown}```")}


def _link(alert: Alert) -> list[Block]:
    """Return the link, or nothing where there is none or it is too long."""
    label = wording.link_label(alert)
    # Quoted, it cannot leave its <...|...>.
    url = fit(quote(alert.link or "", safe=_URL_CHARACTERS), LONGEST_SECTION - len(f"<|{label}>"))
    if not url or url.endswith(ELLIPSIS):
        return []
    return [{"type": "section", "text": _markup(f"<{url}|{label}>")}]


def _plain(text: str) -> Block:
    return {"type": "section", "text": _text(text, LONGEST_SECTION)}


def _text(text: str, limit: int) -> Block:
    return {"type": "plain_text", "text": fit(text, limit), "emoji": False}


def _markup(text: str) -> Block:
    # verbatim: nothing in it becomes a link or a mention by itself.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
