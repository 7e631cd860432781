-- Fitted laws by their ids; the values that each was fitted to stand in params.
-- $fit_ids: VARCHAR[].
-- returns: law, k, size, method, n_points, C, alpha, alpha_lo, alpha_hi, r2, backtest_error, status, S, y, fit_id
SELECT
    law, k, size, method, n_points, C, alpha, alpha_lo, alpha_hi, r2, backtest_error, status,
    params::JSON -> '$.S' AS S, params::JSON -> '$.y' AS y, fit_id
FROM fits
WHERE list_contains($fit_ids, fit_id)
ORDER BY law, k, n_points, size, fit_id
