"""Measurements of the tool itself, beside its peers: `python -m bench.NAME`."""
