"""The second stage: candidates put into the order of a reranker."""
