"""The queues, by what their tasks wait for: a provider, the corpus, a model, or nothing."""

QUEUES = ("embedding", "evaluation", "generation", "default")
"""A worker takes all of them unless `--queues` names some."""
