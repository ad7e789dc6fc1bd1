"""The tables of schema `recallwatch`, as SQLAlchemy maps them.

The migrations are what creates them; a test checks that both say the same. States are text with
a CHECK, so that adding one is a small migration. docs/state_machine.md draws run, shard and alert.
"""

from db.models.base import SCHEMA, Base, Json
from db.models.generation import Candidate, Generation, GenerationRequest
from db.models.golden import (
    Edit,
    EditItem,
    Evidence,
    GoldenItem,
    GoldenVersion,
    Judgment,
    ProposedKey,
    Question,
)
from db.models.operations import Alert, Baseline, Calibration, ScheduleSlot, SeenSchedule
from db.models.runs import Batch, ExactResult, Result, Run, Shard, StageRanking
from db.models.side import SideVector

__all__ = (
    "SCHEMA", "Alert", "Base", "Baseline", "Batch", "Calibration", "Candidate", "Edit", "EditItem",
    "Evidence", "ExactResult", "Generation", "GenerationRequest", "GoldenItem", "GoldenVersion",
    "Json", "Judgment", "ProposedKey", "Question", "Result", "Run", "ScheduleSlot",
    "SeenSchedule", "Shard", "SideVector", "StageRanking",
)  # fmt: skip
