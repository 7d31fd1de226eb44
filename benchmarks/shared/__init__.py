"""What the benchmarks share: how they measure, the models they measure on, how they report."""
