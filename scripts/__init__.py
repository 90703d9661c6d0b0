"""The command line: one small file for each Make verb."""
