"""Simulated peers of a driver, over real sockets. Not here: what is checked with them."""
