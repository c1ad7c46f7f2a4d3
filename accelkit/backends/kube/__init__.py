"""The API server: two transports behind one port. Not here: what backends ask it."""
