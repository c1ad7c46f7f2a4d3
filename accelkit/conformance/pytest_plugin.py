"""The pytest plugin of the conformance suite. Not here: the checks themselves."""
