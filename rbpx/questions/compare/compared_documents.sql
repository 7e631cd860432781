-- The names of the documents of one run in their source.
-- $run_id VARCHAR.
-- returns: doc_id, source_id
SELECT doc_id, source_id
FROM documents_of([$run_id])
ORDER BY doc_id
