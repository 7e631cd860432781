-- The request that a run answered, and the hash of the text that it read.
-- $run_id VARCHAR.
-- returns: config (JSON), text_hash
SELECT config, text_hash
FROM runs
WHERE run_id = $run_id
LIMIT 1
