"""What two runs say about retrieval: pure comparison rules."""
