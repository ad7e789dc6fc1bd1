"""The demo: Python's own documentation, a golden set written by hand, and a planted defect."""
