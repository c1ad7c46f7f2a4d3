"""Published vectors: requests with the answers that they must get, and their runner."""
