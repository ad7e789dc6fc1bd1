"""Scoring: pure functions from rankings and judgments to measures. No clock, network, database."""

from pipeline.scoring.judge import Judged, Scores, score
from pipeline.scoring.measures import CONVENTION, NAMES, Measure, measures_for

__all__ = ["CONVENTION", "NAMES", "Judged", "Measure", "Scores", "measures_for", "score"]
