"""Part of `make setup`: compile the kernels of tokenizers and model once, so that no later command waits."""

from compare.command_line.kernels import compile_all


def main() -> None:
    """Compile all kernels; numba keeps them on disk."""
    compile_all()


if __name__ == "__main__":
    main()
