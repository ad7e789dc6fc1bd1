"""What the product knows: golden sets, embedding, retrieval, scoring, verdict."""
