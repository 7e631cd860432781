-- The scored tokens of a run: what each loses, and its rank.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, position, token_id, nats (as told, infinity and NaN too), rank (halves under mid), as the tokens are stored
SELECT
    doc_id, position, token_id, greatest(-logprob, 0)::FLOAT AS nats, rank_under(greater, ties, $ties)::FLOAT AS rank
FROM true_tokens_of([$run_id])
