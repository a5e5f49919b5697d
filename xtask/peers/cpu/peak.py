"""Runs a command and prints the most memory that it had, in bytes: `python peak.py COMMAND …`."""

from __future__ import annotations

import resource
import subprocess
import sys

KIB = 1024

code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=False).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KIB)
sys.exit(code)
