"""Simulated machines and doubles, for tests of accelkit and of plugins that others write."""
