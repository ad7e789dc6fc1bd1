"""What the adapters to every provider of models share: addresses, keys, HTTP, replies."""
