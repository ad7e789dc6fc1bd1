"""Golden sets in other people's databases."""
