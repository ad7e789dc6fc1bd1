"""Our own state in PostgreSQL: models, migrations, one module of queries per table family."""
