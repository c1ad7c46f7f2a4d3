"""Values and pure functions: a node and what follows from it. No sockets, threads or vendors."""
