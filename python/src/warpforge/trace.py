"""The command `python -m warpforge.trace`. The function is `from warpforge import trace`."""

if __name__ != "__main__":
    # Importing this file would hide the function `warpforge.trace` behind a module of the same name.
    raise ImportError("warpforge.trace is a command, `python -m warpforge.trace`; the function is warpforge.trace")

import sys

from warpforge.command import main

sys.exit(main())
