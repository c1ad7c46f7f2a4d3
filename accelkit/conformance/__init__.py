"""Checks with permanent ids, and what runs them on plugins and drivers. Not here: the agent."""
