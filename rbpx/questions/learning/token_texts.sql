-- The texts of the token ids of a run's tokenizer.
-- $run_id VARCHAR.
-- returns: token_id, text
SELECT token_id, text
FROM vocab
WHERE tokenizer_hash = (SELECT any_value(r.tokenizer_hash) FROM runs AS r WHERE r.run_id = $run_id)
