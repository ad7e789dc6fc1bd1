"""The corpus: the user's chunks table, and the one that `recallwatch corpus load` writes."""
