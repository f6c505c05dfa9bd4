"""Init: what it prints is a configuration that works on the files it was made from."""
