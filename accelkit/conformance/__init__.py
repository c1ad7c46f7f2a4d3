"""The conformance suite: checks with permanent ids, and the runner that proves a plugin, a backend or an agent right."""
