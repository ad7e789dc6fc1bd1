"""Readers of the formats of other tools: tables, TREC, BEIR, Quepid."""
