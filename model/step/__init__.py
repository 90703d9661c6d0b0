"""Loss and gradient of the model by hand: no graph of operations, every result in a buffer that is made once."""
