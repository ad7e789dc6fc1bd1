"""Documents cut into chunks in other ways, and what of the judged texts the chunks hold."""
