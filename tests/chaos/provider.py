"""The loopback OpenAI server with moods: how it answers until it is told otherwise."""

from collections import Counter

from tests.loopback.openai_server import Exchange, OpenAIServer, Reply, hang, raw, refuse, vectors

DIMENSIONS = 32

CALM = vectors(delay=0.15)

QUOTA = "You exceeded your current quota, please check your plan and billing details."

MOODS: dict[str, Reply] = {
    "429 with a short Retry-After": refuse(429, "slow down", headers={"Retry-After": "0.3"}),
    "429 with a long Retry-After": refuse(429, "slow down", headers={"Retry-After": "3"}),
    "500": refuse(500, "the server had an error"),
    "hang": hang(),
    "truncated body": raw(200, b'{"object": "list", "data": [', missing=500),
    "wrong count of vectors": vectors(drop=1),
    "quota": refuse(429, QUOTA, code="insufficient_quota", type="insufficient_quota"),
}


class Provider(OpenAIServer):
    """Answers each request as its mood is, and counts the answers by mood."""

    def __init__(self) -> None:
        super().__init__(DIMENSIONS)
        self.mood: str | None = None
        self.answered: Counter[str] = Counter()
        self.default = self._as_it_feels
        self._http.handle_error = _keep_quiet  # type: ignore[assignment]  # it takes whatever comes

    def _as_it_feels(self, exchange: Exchange) -> None:
        mood = self.mood
        reply = CALM if mood is None else MOODS[mood]
        self.answered[mood or "calm"] += 1
        reply(exchange)


def _keep_quiet(*_: object) -> None:
    """Write nothing about connections that break off."""
