"""Losses to an answer: the experiment, its steps, and the report in bits per character."""
