"""Races against the programs that people would otherwise use."""
