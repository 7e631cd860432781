-- The tokenizers of some runs, and bytes of text a token.
-- $run_ids VARCHAR[].
-- returns: run_id, tokenizer_hash, bytes_per_token (NULL where bytes were not counted)
SELECT DISTINCT run_id, tokenizer_hash, n_bytes_scored / n_tokens AS bytes_per_token
FROM runs
WHERE list_contains($run_ids, run_id)
