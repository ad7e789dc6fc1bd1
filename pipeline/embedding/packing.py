"""Packing texts into requests that an embedding API takes."""

from collections.abc import Iterator, Sequence


def most_tokens(text: str) -> int:
    """Return an upper bound of the tokens of a text: its length in UTF-8 bytes.

    No token of a byte-level tokenizer (OpenAI's all are) is shorter than a byte, so the bound needs
    no tokenizer and holds for any language. English has about four bytes a token: its requests are
    a quarter full, which costs a few more requests and never a refused one.
    """
    return len(text.encode())


def pack(texts: Sequence[str], max_inputs: int, max_tokens: int) -> Iterator[Sequence[str]]:
    """Yield the texts in order, in runs of at most `max_inputs` texts and `max_tokens` tokens.

    A text that is longer than `max_tokens` by itself is a run of its own: whether it is too long is
    for the server to say.
    """
    start, tokens = 0, 0
    for end, text in enumerate(texts):
        size = most_tokens(text)
        if end > start and (end - start == max_inputs or tokens + size > max_tokens):
            yield texts[start:end]
            start, tokens = end, 0
        tokens += size
    if start < len(texts):
        yield texts[start:]
