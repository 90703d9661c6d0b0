"""The whole chain on text of known entropy."""
