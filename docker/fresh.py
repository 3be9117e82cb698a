"""Ends with status 0 if a file of a folder is younger than some seconds: `fresh.py FOLDER SECONDS`.

A streaming query writes one for each micro-batch under `commits` of its checkpoint. One from the future tells nothing:
it was written before the clock was set back.
"""

import os
import sys
import time

folder, seconds = sys.argv[1], float(sys.argv[2])
now = time.time()
try:
    ages = [now - entry.stat().st_mtime for entry in os.scandir(folder)]
except OSError as error:
    sys.exit(f"{folder}: {error}")
ahead = 5.0  # clocks of file systems differ by that
sys.exit(0 if any(-ahead < age < seconds for age in ages) else f"{folder}: no file is younger than {seconds:g} s")
