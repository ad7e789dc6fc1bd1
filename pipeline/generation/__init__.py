"""Golden questions written by a language model from chunks: prompts, requests, filters."""
