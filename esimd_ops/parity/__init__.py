"""Does a build of the operators do what the table says? Of any namespace, on any device, in a process of its own.

What a schema declares is judged by `schema_patch.schemas.rules`, under its codes.

`supervise.check` runs a request in a child process, `trial` is what happens there.
"""
