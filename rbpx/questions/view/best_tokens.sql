-- The best tokens at each place of one document under some runs; no rows where they were not kept.
-- $run_ids VARCHAR[]; $doc_id INTEGER.
-- returns: run_id, position, texts (the best first, NULL where a text is not in the store), nats
WITH places AS (
    SELECT
        run_id, position, unnest(token_ids) AS token_id, unnest(logprobs) AS logprob,
        unnest(range(len(token_ids))) AS place
    FROM best
    WHERE list_contains($run_ids, run_id) AND doc_id = $doc_id
)
SELECT
    p.run_id, p.position, list(v.text ORDER BY p.place) AS texts, list(-p.logprob::DOUBLE ORDER BY p.place) AS nats
FROM places AS p
JOIN (SELECT DISTINCT run_id, tokenizer_hash FROM runs) AS r USING (run_id)
LEFT JOIN vocab AS v USING (tokenizer_hash, token_id)
GROUP BY p.run_id, p.position
ORDER BY p.run_id, p.position
