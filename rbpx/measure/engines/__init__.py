"""Engines that measure in place of rbpx."""
