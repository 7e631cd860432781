-- What one run gave each target or choice; a text that was read as one target is an item of its own.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, item, choice (NULL without choices), correct (NULL without choices), n_characters, n_answer_bytes (of
--          the choice as it stands in the data; NULL for texts), n_words (of a text; NULL for items), n_bytes_scored,
--          category, domain, n_tokens, loglikelihood (nats), worst_rank (of its tokens), is_greedy (no token has a
--          greater logit than a true one), is_tied (and another has the same), ranks (of its tokens, in order)
SELECT
    d.doc_id, coalesce(d.item, d.doc_id) AS item, d.choice, d.correct, d.n_characters, d.n_answer_bytes, d.n_words,
    d.n_bytes_scored, d.category, d.domain, count(*) AS n_tokens, sum(t.logprob::DOUBLE) AS loglikelihood,
    max(rank_under(t.greater, t.ties, $ties))::DOUBLE AS worst_rank, max(t.greater) = 0 AS is_greedy,
    max(t.greater) = 0 AND max(t.ties) > 0 AS is_tied,
    list(rank_under(t.greater, t.ties, $ties)::DOUBLE ORDER BY t.position) AS ranks
FROM documents AS d
JOIN tokens AS t USING (run_id, doc_id)
WHERE d.run_id = $run_id
GROUP BY ALL
ORDER BY d.doc_id
