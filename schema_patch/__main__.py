"""`python -m schema_patch`."""

from .cli import main

raise SystemExit(main())
