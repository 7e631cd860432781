-- How often each rank occurs in each document of a run.
-- $run_id: VARCHAR. $ties: VARCHAR.
-- returns: doc_id, rank (halves under `mid`), n_tokens, sum_logprob (nats), by document and rank
SELECT
    doc_id, rank_under(greater, ties, $ties)::DOUBLE AS rank, count(*) AS n_tokens, sum(logprob::DOUBLE) AS sum_logprob
FROM true_tokens_of([$run_id])
GROUP BY ALL
ORDER BY doc_id, rank
