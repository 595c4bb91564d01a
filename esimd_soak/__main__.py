"""`python -m esimd_soak`."""

from .commands.main import main

raise SystemExit(main())
