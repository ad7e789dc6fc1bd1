"""From the settings of a reranker to the reranker."""

from collections.abc import Mapping

from pipeline.retrieval.http.endpoint import Endpoint
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.rerank.base import Reranker
from pipeline.retrieval.rerank.http import HttpRerankerClient
from pipeline.retrieval.rerank.python import PythonRerankerCall
from pipeline.retrieval.strategies.rerank import HttpReranker, PythonReranker


def build_reranker(
    strategy: str,
    settings: HttpReranker | PythonReranker,
    environment: Mapping[str, str],
    host: PythonHost,
) -> Reranker:
    """Return the reranker of a strategy. Opens no connection.

    Raises SettingsError where an environment variable is not set, PermanentError where the owner's
    code cannot be loaded.
    """
    if isinstance(settings, HttpReranker):
        return HttpRerankerClient(settings, Endpoint(strategy, settings, environment))
    return PythonRerankerCall(settings, host)
