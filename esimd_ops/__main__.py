"""`python -m esimd_ops`."""

import sys

from .cli import main

sys.exit(main())
