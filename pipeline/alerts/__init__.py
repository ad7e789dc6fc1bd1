"""Alerts: what is said, to which channels, and how each channel hands it over, once.

message (the nouns), made by compose from a run; wording puts it into words for slack and email;
webhook sends it whole. base says what a channel promises, build makes channels from settings.
"""
