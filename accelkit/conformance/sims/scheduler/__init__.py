"""A simulated scheduler of devices. Not here: what is checked with it."""
