"""The queues, by what their tasks wait for: a provider, the corpus, a model, people, nothing."""

QUEUES = ("embedding", "evaluation", "generation", "alerts", "default")
"""A worker takes all of them unless `--queues` names some."""
