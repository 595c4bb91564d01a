"""The commands: argv -> calls -> streams and exit code. The only package that prints."""
