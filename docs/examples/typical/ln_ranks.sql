-- Sums of ln rank by run and document, without wrong choices of items; a document without a scored token has no row.
-- $run_ids: VARCHAR[]. $ties: VARCHAR.
-- returns: run_id, doc_id, n_tokens, sum_ln_rank
SELECT run_id, doc_id, count(*) AS n_tokens, sum(ln(rank_under(greater, ties, $ties))) AS sum_ln_rank
FROM true_tokens
WHERE list_contains($run_ids, run_id)
GROUP BY run_id, doc_id
ORDER BY run_id, doc_id
