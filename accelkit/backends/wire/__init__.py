"""What is said over unix sockets: messages, methods, a server's life. Not here: the answers."""
