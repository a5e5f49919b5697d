"""Pass 1 of a golden benchmark: PyTorch trains, and leaves what another engine is judged by."""
