"""How many tokens a request takes, before it is sent: about, and at most."""

import json
import unicodedata

from pipeline.generation.base import Ask, Usage
from pipeline.generation.requests import message_of, most_tokens_out

_ASCII_A_TOKEN = 3.5
"""Characters of English in a token: 3.5 is Anthropic's figure for its models up to 4.5.

Newer ones take about 30 % more tokens for the same text.
"""

_TOOL_TOKENS = 500
"""What the API adds to a prompt with a tool, about: its page on tool use lists 159 to 530."""

_MOST_ADDED = 2_000

_FRAME_OUT = 50
_QUESTION_OUT = 80


def size(ask: Ask) -> tuple[Usage, Usage]:
    """Return the tokens that an ask will take, by experience, and at most.

    By experience: the whole request's characters, of which ASCII ones share a token and others have
    one each. At most: its UTF-8 bytes, as no token of a byte-level tokenizer is shorter, also after
    compatibility normalization (which some tokenizers apply first), and the longest answer allowed.
    """
    sent = json.dumps(message_of(ask, ""), ensure_ascii=False)
    ascii_characters = len(sent.encode("ascii", "ignore"))
    others = len(sent) - ascii_characters
    about = Usage(
        round(ascii_characters / _ASCII_A_TOKEN + others) + _TOOL_TOKENS,
        _FRAME_OUT + _QUESTION_OUT * len(ask.categories),
    )
    longest = max(len(sent.encode()), len(unicodedata.normalize("NFKC", sent).encode()))
    return about, Usage(longest + _MOST_ADDED, most_tokens_out(ask))
