"""GPUs, read through the real binding from a library of our own."""
