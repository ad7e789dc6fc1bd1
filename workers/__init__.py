"""The Celery app and its tasks: composes pipeline and db, holds no rule of its own."""
