"""Probe: tests of a policy's behaviour as a black box, through the engine that a run would use.

Each test asks fresh instances of the policy with real observations and compares what comes back. Random sources
within reach are put into a known state before every call, so that what still differs is history or hidden noise.
"""
