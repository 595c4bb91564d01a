"""What operators really write: watches a program that uses them, and judges their schemas by the bytes.

    from esimd_ops.observe import observe

    with observe("mylib") as seen:
        model(x)
    print(seen.report())

`entry` stands in the way of calls, `schedule` chooses those to watch, `watch` looks at one with `before`, `handed` and
`memory`; `record` adds up what was seen, `session` holds it all for a process, `judge` makes a report of it.
"""

import torch  # noqa: F401  first: its entry points may ask for this package while it is imported

from .api import Seen, observe

__all__ = ["Seen", "observe"]
