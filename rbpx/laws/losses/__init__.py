"""Predicts one loss from another: y = E_y + K (x - E_x)^kappa through models that have both, whatever their size."""
