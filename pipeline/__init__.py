"""What the product knows: golden set, embedding, retrieval, scoring, verdict. Imports nothing of ours."""
