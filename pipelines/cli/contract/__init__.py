"""`tidecast contract`: contracts checked, proposed, compared, and what was decided under one replayed."""
