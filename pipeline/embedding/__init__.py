"""Texts to vectors: the local model, OpenAI-shaped servers, and the cache before them."""
