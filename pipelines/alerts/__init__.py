"""The follower: reads topics, lake and contracts, exposes metrics of every job, and posts alerts to webhooks."""
