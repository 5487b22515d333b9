"""Questions about the inside of a network."""
