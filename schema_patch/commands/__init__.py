"""The commands: argv -> calls -> streams and exit code. The only package that prints; it may import all others."""
