"""Alerts: what is said, to which channels, and how each channel hands it over, once.

message (the nouns) -> compose (from a run) -> outbox, elsewhere -> wording -> slack | webhook | email.
"""
