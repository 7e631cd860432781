-- The rank of each scored token of one run, and where it stands. They come in no order; `cut_sequences` sorts them.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, rank
SELECT doc_id, position, rank_under(greater, ties, $ties) AS rank
FROM true_tokens
WHERE run_id = $run_id
