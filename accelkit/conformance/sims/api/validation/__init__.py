"""What a server refuses in objects, kind by kind. Not here: requests as a whole."""
