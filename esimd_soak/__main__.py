"""`python -m esimd_soak`."""

from .cli import main

raise SystemExit(main())
