"""Try other embedding models and other chunkings beside production, which stays as it is."""
