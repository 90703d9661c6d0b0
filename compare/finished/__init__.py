"""What is done with a finished model: let it write, export it, score a foreign model next to it."""
