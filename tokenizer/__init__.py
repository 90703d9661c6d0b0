"""Text to ids and back: the tokenizers, their training and their files. Imports only from `data`."""
