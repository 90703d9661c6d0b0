"""How sure the comparison is: intervals, the three outcomes of a pair, and the verdict in words."""
