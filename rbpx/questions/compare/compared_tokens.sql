-- The scored tokens of one run with their text and their place, in the order of the documents; of items the targets that
-- are right.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, token_id, text (NULL where it is not in the store), rank, nats, first_byte, n_bytes (NULL
--          in runs of earlier versions), tokenizer_hash
WITH known AS (
    SELECT any_value(tokenizer_hash) AS tokenizer_hash
    FROM runs
    WHERE run_id = $run_id
)
SELECT
    t.doc_id, t.position, t.token_id, v.text, rank_under(t.greater, t.ties, $ties)::DOUBLE AS rank,
    -t.logprob::DOUBLE AS nats, t.first_byte::BIGINT AS first_byte, t.n_bytes::BIGINT AS n_bytes, k.tokenizer_hash
FROM true_tokens_of([$run_id]) AS t
CROSS JOIN known AS k
LEFT JOIN vocab AS v ON v.token_id = t.token_id AND v.tokenizer_hash = k.tokenizer_hash
ORDER BY t.doc_id, t.position
