"""No product of sizes wraps around: every absurd integer is refused by name, and none ends the process."""

import subprocess
import sys
from pathlib import Path


def test_every_absurd_integer_is_refused(extension):
    program = Path(__file__).with_name("integers.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    *lines, last = done.stdout.replace("\r", "\n").rstrip().splitlines()
    assert done.returncode == 0, (last, done.stderr)
    assert not [line for line in lines if line and not line.endswith(" ")]
    assert int(last.split()[0]) > 20_000
