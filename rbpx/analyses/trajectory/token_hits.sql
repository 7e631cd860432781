-- Whether each token of a text was a hit in each of several runs; those that were not scored in every run are left out.
-- $run_ids VARCHAR[], in the order of the answer's lists; $k INTEGER; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, token_id, hits (BOOLEAN[], one a run)
WITH asked AS (
    SELECT unnest($run_ids) AS run_id, unnest(range(len($run_ids))) AS place
)
SELECT
    t.doc_id, t.position, t.token_id,
    list(rank_under(t.greater, t.ties, $ties) <= $k ORDER BY a.place) AS hits
FROM true_tokens AS t
JOIN asked AS a USING (run_id)
GROUP BY t.doc_id, t.position, t.token_id
HAVING count(*) = len($run_ids)
ORDER BY t.doc_id, t.position
