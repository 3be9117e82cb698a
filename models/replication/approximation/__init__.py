"""Answers with a stated bound: sketches and samples, their sizes, and a ledger of what they may be wrong by."""
