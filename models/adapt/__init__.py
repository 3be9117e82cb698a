"""Moving forecasters between domains, and noticing that a domain has changed."""
