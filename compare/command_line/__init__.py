"""The command line: its commands, Make's variables, the streams, the page of settings, kernels compiled at set-up."""
