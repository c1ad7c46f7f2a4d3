"""The command line, and the one place that composes vendors, backends and the agent."""
