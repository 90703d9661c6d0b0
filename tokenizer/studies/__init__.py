"""Looking into a tokenizer: training traces, compression studies, intrinsic metrics."""
