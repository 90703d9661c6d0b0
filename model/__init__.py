"""Ids to loss: the mini-GPT, its training, evaluation and checkpoints. Imports from `tokenizer` and `data`."""
