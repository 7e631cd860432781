-- What some token ids stand for in the tokenizer of a run.
-- $run_id VARCHAR; $token_ids INTEGER[].
-- returns: token_id, text
SELECT token_id, text
FROM vocab
WHERE tokenizer_hash = (SELECT any_value(tokenizer_hash) FROM runs WHERE run_id = $run_id)
    AND list_contains($token_ids, token_id)
ORDER BY token_id
