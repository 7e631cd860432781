"""Results of analyses in, interactive figures (Vega-Lite, by Altair) and the values that they draw out."""
