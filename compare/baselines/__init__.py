"""What a model must beat: compressors and n-grams on the same text."""
