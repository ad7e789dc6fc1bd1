"""Scoring: pure functions from rankings and judgments to measures. No clock, network, database."""

from pipeline.scoring.judge import Judged, Scores, judgments_at, score
from pipeline.scoring.measures import CONVENTION, NAMES, Measure, measures_for

__all__ = [
    "CONVENTION",
    "NAMES",
    "Judged",
    "Measure",
    "Scores",
    "judgments_at",
    "measures_for",
    "score",
]
