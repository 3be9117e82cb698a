"""Ends with status 0 if a file of a folder is younger than some seconds: `fresh.py FOLDER SECONDS`.

A streaming query writes one for each micro-batch under `commits` of its checkpoint.
"""

import os
import sys
import time

folder, seconds = sys.argv[1], float(sys.argv[2])
try:
    newest = max((entry.stat().st_mtime for entry in os.scandir(folder)), default=0.0)
except OSError as error:
    sys.exit(f"{folder}: {error}")
age = time.time() - newest
sys.exit(0 if age < seconds else f"{folder}: no file is younger than {seconds:g} s")
