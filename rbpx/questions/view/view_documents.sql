-- How well each document of a text is predicted by some runs.
-- $run_ids VARCHAR[].
-- returns: doc_id, source_id, run_id, n_tokens, nats (summed over its scored tokens)
SELECT t.doc_id, any_value(d.source_id) AS source_id, t.run_id, count(*) AS n_tokens, -sum(t.logprob::DOUBLE) AS nats
FROM tokens_of($run_ids) AS t
JOIN documents_of($run_ids) AS d USING (run_id, doc_id)
GROUP BY t.doc_id, t.run_id
ORDER BY t.doc_id, t.run_id
