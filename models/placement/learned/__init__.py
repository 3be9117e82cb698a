"""Placements proposed by a network that learned from what moves come to. Pa-Stream paper."""
