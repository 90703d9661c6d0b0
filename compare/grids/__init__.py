"""Many short runs kept by the hash of their inputs: learning rates and vocabulary sizes."""
