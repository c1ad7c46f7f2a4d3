"""Dynamic resource allocation: devices in slices, claims prepared on the node."""
