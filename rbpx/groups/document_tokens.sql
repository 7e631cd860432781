-- The tokens of one run in the order in which they are stored: `rbpx.groups.document_ranks` counts them by document and
-- rank, which takes half as long as grouping them here, and adds log-probabilities up in this order.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, rank, logprob (nats)
SELECT doc_id, rank_under(greater, ties, $ties)::DOUBLE AS rank, logprob
FROM true_tokens
WHERE run_id = $run_id
