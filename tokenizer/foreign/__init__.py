"""Tokenizers of other tools as contestants: read from their files, or trained by their libraries."""
