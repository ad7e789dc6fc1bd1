"""The kill suite: the product as real processes, broken at random, its numbers checked.

`python -m tests.chaos --help` says how to run it; docs/reliability.md what it proves.
"""
