-- Bytes of text that the scored tokens of each document of one run stand for; NULL where the run does not say. Wrong
-- choices of items are left out.
-- $run_id VARCHAR.
-- returns: doc_id, n_bytes_scored (bytes, UTF-8)
SELECT doc_id, n_bytes_scored
FROM documents_of([$run_id])
WHERE correct IS NOT FALSE
ORDER BY doc_id
