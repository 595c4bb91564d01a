"""`python -m schema_patch`."""

from .commands.main import main

raise SystemExit(main())
