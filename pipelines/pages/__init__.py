"""The pages README.md and docs/*.md: what of them is rendered, from figures and from the code."""
