"""`python -m esimd_ops`."""

import sys

from .commands.main import main

sys.exit(main())
