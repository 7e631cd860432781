-- The ranks of the scored tokens of one run and where they stand, in no order; `rbpx.groups.text_ranks` sorts them.
-- Positions that were not scored are absent: the scored tokens before and after them are neighbours.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, rank
SELECT doc_id, position, rank_under(greater, ties, $ties)::DOUBLE AS rank
FROM true_tokens
WHERE run_id = $run_id
