"""One training run: its loop, schedule, optimizers, processes, signals and log."""
