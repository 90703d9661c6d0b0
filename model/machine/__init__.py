"""What a run asks of the machine that it is on."""
