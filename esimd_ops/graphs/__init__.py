"""Which of the operators are in a server's compiled graphs? From its caches on disk, or seen while it runs.

    traced   called by a compiled graph: what its schema says counts
    opaque   called inside another operator, which the graph calls without looking into it
    eager    called outside compiled graphs
    absent   registered, and not called so far

Files: `cached` reads caches, `live` watches the calls of a running process and leaves a record, `command` shows both.
"""
