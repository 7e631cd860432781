-- How often each rank occurs in each document of a run, among the tokens of some ids and among all others.
-- $run_id: VARCHAR. $token_ids: INTEGER[]. $ties: VARCHAR.
-- returns: named (whether the id is one of them), doc_id, rank, n_tokens, sum_logprob (nats)
SELECT
    token_id IN (SELECT unnest($token_ids)) AS named, doc_id, rank_under(greater, ties, $ties)::DOUBLE AS rank,
    count(*) AS n_tokens, sum(logprob::DOUBLE) AS sum_logprob
FROM true_tokens
WHERE run_id = $run_id
GROUP BY ALL
ORDER BY ALL
