"""Writers of golden sets in the formats of other tools: tables, TREC, BEIR."""
