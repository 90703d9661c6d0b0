"""Documents: where texts are cut, which split each gets, and what the splits share."""
