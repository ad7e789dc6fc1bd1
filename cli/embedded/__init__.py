"""The embedded stack: PostgreSQL, Valkey and worker processes that commands share.

Each command that needs a server opens the stack (`stack.open_stack`); the first one starts the
processes, the last one stops them. What is needed to tell first from last lives in the kernel
(file locks) and in the process table, so that a command that was killed leaves nothing to mend.
"""
