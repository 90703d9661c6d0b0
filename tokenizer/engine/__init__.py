"""The fast BPE engine: the same merges and ids as `tokenizer.reference`, from compiled kernels."""
