-- Hits and nats of the tokens of some ids and of all others, by document, of some runs.
-- $run_ids VARCHAR[]; $token_ids INTEGER[]; $k INTEGER; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: run_id, is_named, doc_id, n_tokens, n_hits, nats (sum)
SELECT
    run_id, list_contains($token_ids, token_id) AS is_named, doc_id, count(*) AS n_tokens,
    count(*) FILTER (rank_under(greater, ties, $ties) <= $k) AS n_hits, sum(-logprob::DOUBLE) AS nats
FROM true_tokens
WHERE list_contains($run_ids, run_id)
GROUP BY ALL
ORDER BY ALL
