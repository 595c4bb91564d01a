import sys

from schema_patch.build.driver.main import main

sys.exit(main(sys.argv[1:]))
