"""Characters and bytes with special tokens."""
