"""Where libraries, packages and compile caches lie on a disk or in an archive."""
