-- The ranks of the scored tokens of a run.
-- $run_id: VARCHAR. $ties: VARCHAR.
-- returns: doc_id, position, rank (halves under `mid`), as the tokens are stored
SELECT doc_id, position, rank_under(greater, ties, $ties)::DOUBLE AS rank
FROM true_tokens_of([$run_id])
