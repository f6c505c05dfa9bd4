"""The web: real sockets on loopback, on ports that the kernel chooses."""
