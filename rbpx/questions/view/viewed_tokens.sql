-- The scored tokens of one document under some runs.
-- $run_ids VARCHAR[]; $doc_id INTEGER; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: run_id, position, text (NULL where it is not in the store), rank, nats
SELECT
    t.run_id, t.position, v.text, rank_under(t.greater, t.ties, $ties)::DOUBLE AS rank, -t.logprob::DOUBLE AS nats
FROM tokens_of($run_ids) AS t
JOIN (SELECT DISTINCT run_id, tokenizer_hash FROM runs) AS r USING (run_id)
LEFT JOIN vocab AS v USING (tokenizer_hash, token_id)
WHERE t.doc_id = $doc_id
ORDER BY t.run_id, t.position
