"""`recallwatch golden`: the questions, and the chunks that should come back."""
