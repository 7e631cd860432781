-- The documents of one run, and the text that each was cut from: its name in the source without ":LINE".
-- $run_id VARCHAR.
-- returns: doc_id, source_id (its number where it has no name), text, n_scored (tokens)
SELECT
    doc_id, coalesce(source_id, doc_id::VARCHAR) AS source_id, n_scored,
    coalesce(regexp_replace(source_id, ':[0-9]+$', ''), doc_id::VARCHAR) AS "text"
FROM documents_of([$run_id])
ORDER BY doc_id
