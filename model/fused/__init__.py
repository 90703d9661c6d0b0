"""Operations of the model with hand-written gradients, and their compiled kernels."""
