"""A simulated API server. Not here: what is checked with it."""
