-- The median rank of the true token in each of several runs.
-- $run_ids: VARCHAR[]. $ties: VARCHAR.
-- returns: run_id, median_rank
SELECT run_id, median(rank_under(greater, ties, $ties)) AS median_rank
FROM tokens
WHERE list_contains($run_ids, run_id)
GROUP BY run_id
ORDER BY run_id
