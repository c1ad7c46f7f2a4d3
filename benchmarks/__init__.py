"""How fast and how small, each beside its budget. Not here: tests, which hold no durations."""
