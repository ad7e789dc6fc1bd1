"""Ways to retrieve chunks for questions: vector, full text and hybrid, batch by batch."""
