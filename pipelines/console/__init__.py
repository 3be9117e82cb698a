"""The pages inside Airflow's UI that a team keeps open: every job's state, and the switch of its mode."""
