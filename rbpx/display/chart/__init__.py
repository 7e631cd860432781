"""Draws rows of data as interactive charts (Vega-Lite, by Altair), with tables of their values."""
