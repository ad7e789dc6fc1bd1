"""Alembic migrations of the recallwatch schema."""
