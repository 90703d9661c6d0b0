"""Tokenizers in the formats of other tools, each proven with its own library before it is handed out."""
