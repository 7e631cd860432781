-- Tokens, hits and nats of each document of a run, of the tokens of some ids and of all others.
-- $run_id: VARCHAR. $token_ids: INTEGER[]. $ties: VARCHAR.
-- returns: doc_id, named (whether its id is one of them), n_tokens, n_hits (of rank 1), nats (summed)
SELECT
    doc_id, token_id IN (SELECT unnest($token_ids)) AS named, count(*) AS n_tokens,
    count(*) FILTER (rank_under(greater, ties, $ties) <= 1) AS n_hits, -sum(logprob::DOUBLE) AS nats
FROM true_tokens
WHERE run_id = $run_id
GROUP BY ALL
ORDER BY ALL
