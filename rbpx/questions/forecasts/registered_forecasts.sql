-- Every registered prediction of some families and texts, the earliest first.
-- $families, $datasets: VARCHAR[], or NULL for all.
-- returns: the columns of the relation forecasts
SELECT *
FROM forecasts
WHERE ($families IS NULL OR list_contains($families, family))
    AND ($datasets IS NULL OR list_contains($datasets, dataset))
ORDER BY registered_at, forecast_id, law, k, S, D
