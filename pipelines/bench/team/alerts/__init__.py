"""The alerts of a job with planted troubles, and of one without, over hours that are fast-forwarded."""
