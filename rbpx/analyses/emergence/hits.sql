-- Which scored tokens of one run are hits, rank at most k, in the order of the text; a document without any is absent.
-- $run_id VARCHAR; $k INTEGER; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, hits (BOOLEAN[], one a scored token, by position)
SELECT doc_id, list(rank_under(greater, ties, $ties) <= $k ORDER BY position) AS hits
FROM true_tokens
WHERE run_id = $run_id
GROUP BY doc_id
ORDER BY doc_id
