-- The scored tokens of one run with all that a slice may choose them by.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, token_id, text, frequency (how often the token id is scored in this text), decile (1 to 10,
--          of the scored tokens, by the frequency of their ids, most frequent first), n_tokens (of the document),
--          category, domain (of the item; NULL in texts), greater, ties, logprob (nats), rank
WITH scored AS (
    FROM true_tokens_of([$run_id])
),
types AS (
    SELECT token_id, count(*) AS frequency
    FROM scored
    GROUP BY token_id
),
-- A type stands in the decile in which its first token does, so that all its tokens share one.
placed AS (
    SELECT
        token_id, frequency,
        1 + 10 * (sum(frequency) OVER (ORDER BY frequency DESC, token_id) - frequency) // sum(frequency) OVER () AS decile
    FROM types
),
words AS (
    SELECT token_id, text
    FROM vocab
    WHERE tokenizer_hash = (SELECT any_value(r.tokenizer_hash) FROM runs AS r WHERE r.run_id = $run_id)
)
SELECT
    s.doc_id, s.position, s.token_id, w.text, p.frequency, p.decile::INTEGER AS decile, d.n_tokens, d.category, d.domain,
    s.greater, s.ties, s.logprob, rank_under(s.greater, s.ties, $ties)::DOUBLE AS rank
FROM scored AS s
JOIN placed AS p USING (token_id)
JOIN documents_of([$run_id]) AS d USING (doc_id)
LEFT JOIN words AS w USING (token_id)
