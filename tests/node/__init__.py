"""Real Kubernetes nodes on this host, for tests.

``cluster`` is what tests use; everything else here is how a node is made.
By hand: ``python -m tests.node up --dir DIR``.
"""
