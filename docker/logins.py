"""Prints the passwords of Airflow's logins as its file of them has to be (JSON): those of `admin` and `viewer`."""

import json
import os
import secrets

# Of a login without one Airflow makes a password up, and prints it into its log.
viewer = os.environ.get("AIRFLOW_VIEWER_PASSWORD") or secrets.token_hex()
print(json.dumps({"admin": os.environ["TIDECAST_AIRFLOW__PASSWORD"], "viewer": viewer}))
