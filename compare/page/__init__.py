"""The report's HTML page and its pictures."""
