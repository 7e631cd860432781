-- The scored tokens of one run: what each loses, its rank, and its place in its document.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, token_id, nats, rank (halves under mid), first_byte, n_bytes (NULL in runs of earlier versions),
--          by document and position
SELECT
    doc_id::BIGINT AS doc_id, position::BIGINT AS position, token_id::BIGINT AS token_id, -logprob::FLOAT AS nats,
    rank_under(greater, ties, $ties)::FLOAT AS rank, first_byte::BIGINT AS first_byte, n_bytes::BIGINT AS n_bytes
FROM true_tokens
WHERE run_id = $run_id
ORDER BY doc_id, position
