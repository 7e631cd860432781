"""Rows of data in, interactive charts (Vega-Lite, by Altair) and the tables beside them out."""
