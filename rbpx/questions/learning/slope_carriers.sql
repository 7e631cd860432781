-- What each token gives to the slope of cross-entropy between two runs, -d nats / d ln x: positive where it falls.
-- $run_id, $next_run_id VARCHAR; $ln_ratio DOUBLE, ln of x of the second over that of the first; $ties VARCHAR.
-- returns: doc_id, position, token_id, text (NULL where it is not in the store), nats, next_nats, rank, next_rank, slope,
--          the largest slope first
WITH words AS (
    SELECT token_id, text
    FROM vocab
    WHERE tokenizer_hash = (SELECT any_value(tokenizer_hash) FROM runs WHERE run_id = $run_id)
)
SELECT
    t.doc_id, t.position, t.token_id, w.text, -t.logprob::DOUBLE AS nats, -n.logprob::DOUBLE AS next_nats,
    rank_under(t.greater, t.ties, $ties)::DOUBLE AS rank, rank_under(n.greater, n.ties, $ties)::DOUBLE AS next_rank,
    (n.logprob::DOUBLE - t.logprob::DOUBLE) / $ln_ratio AS slope
FROM true_tokens AS t
JOIN true_tokens AS n USING (doc_id, position, token_id)
LEFT JOIN words AS w USING (token_id)
WHERE t.run_id = $run_id AND n.run_id = $next_run_id
ORDER BY slope DESC, t.doc_id, t.position
