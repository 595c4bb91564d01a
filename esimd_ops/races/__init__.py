"""Host builds of operators, run under orders of work-groups: races, bounds, unwritten memory, reproducers."""
