"""Generation step by step: the model with a cache, the drawing of tokens, and the text that they make."""
