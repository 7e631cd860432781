-- The scored tokens of several runs in one table, a row for each token and run: what it loses, and its rank.
-- $run_ids VARCHAR[], in order along the axis; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: key (document, position in 20 bits and token id in 21 bits), nth (of which run, from 1), nats, rank (halves under
--          mid), first_byte (-1 in runs of earlier versions), by key and run
SELECT
    (doc_id::BIGINT << 41) | (position::BIGINT << 21) | token_id::BIGINT AS key,
    list_position($run_ids, run_id)::INTEGER AS nth, greatest(-logprob, 0)::FLOAT AS nats,
    rank_under(greater, ties, $ties)::FLOAT AS rank, coalesce(first_byte, -1)::BIGINT AS first_byte
FROM true_tokens
WHERE list_contains($run_ids, run_id) AND isfinite(logprob)
ORDER BY key, nth
