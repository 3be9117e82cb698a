"""Ends with status 0 if a page answers, and says that the named parts are healthy: `health.py URL [PART ...]`."""

import json
import sys
import urllib.request

url, *parts = sys.argv[1:]
past_proxies = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # engines hand theirs to every container
try:
    with past_proxies.open(url, timeout=4) as page:
        told = page.read()
    state = json.loads(told) if parts else {}
except (OSError, ValueError) as error:
    sys.exit(f"{url}: {error}")
sick = [part for part in parts if state.get(part, {}).get("status") != "healthy"]
sys.exit(f"{url}: not healthy: {', '.join(sick)}" if sick else 0)
