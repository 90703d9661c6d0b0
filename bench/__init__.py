"""Measurements of the tool itself, next to its peers: `python -m bench.NAME`."""
