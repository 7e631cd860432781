-- The scored tokens of a run: what each loses, and its rank.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: key (document, position in 20 bits and token id in 21 bits), nats, rank (halves under mid)
SELECT
    (doc_id::BIGINT << 41) | (position::BIGINT << 21) | token_id::BIGINT AS key, greatest(-logprob, 0)::FLOAT AS nats,
    rank_under(greater, ties, $ties)::FLOAT AS rank
FROM true_tokens_of([$run_id])
WHERE isfinite(logprob)
