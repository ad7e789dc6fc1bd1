"""Alembic's entry: runs on the connection that `db.migrate` hands over."""

from alembic import context
from sqlalchemy import inspect
from sqlalchemy.schema import CreateSchema

from db.models import SCHEMA, Base

connection = context.config.attributes["connection"]
# Not IF NOT EXISTS: that wants the right to create schemas even where an owner of the database
# made this one.
if not inspect(connection).has_schema(SCHEMA):
    connection.execute(CreateSchema(SCHEMA))
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
