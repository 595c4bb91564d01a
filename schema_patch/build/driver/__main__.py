"""python -m schema_patch.build.driver: the command line of main.py."""

import sys

from schema_patch.build.driver.main import main

sys.exit(main(sys.argv[1:]))
