-- When runs were measured; imported ones do not say.
-- $run_ids VARCHAR[].
-- returns: run_id, started_at
SELECT DISTINCT run_id, started_at
FROM runs
WHERE list_contains($run_ids, run_id)
