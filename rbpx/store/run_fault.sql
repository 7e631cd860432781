-- The first fault of the tables of a run, alone and against one another and its manifest: values out of range, tokens
-- against rank_counts, documents and manifest. Reads the relations `tokens`, `rank_counts`, `documents` of that run.
-- $run_id VARCHAR; of its manifest $vocab_size, $n_tokens, $n_documents, $n_skipped, $n_bytes, $n_bytes_scored BIGINT,
-- $cross_entropy_nats DOUBLE
-- returns: fault VARCHAR, null without one
WITH of_tokens AS (
    SELECT
        count_if(run_id IS DISTINCT FROM $run_id) AS n_other,
        count_if((doc_id >= 0 AND position >= 0 AND token_id BETWEEN 0 AND $vocab_size - 1
            AND least(first_byte, n_bytes, 0) = 0) IS NOT TRUE) AS n_misplaced, -- `least` passes over null
        count_if(least(greater, ties, 0) < 0 OR coalesce(greater, 0)::BIGINT + coalesce(ties, 0) >= $vocab_size) AS n_misranked,
        count_if((logprob <= 0) IS NOT TRUE) AS n_improbable, -- NaN is above any number
        count_if(correct IS NOT FALSE) AS n,
        coalesce(sum(logprob::DOUBLE) FILTER (WHERE correct IS NOT FALSE), 0) AS nats
    FROM tokens
),
of_ranks AS (
    SELECT
        count_if(run_id IS DISTINCT FROM $run_id) AS n_other,
        count_if((least(greater, ties, 0) = 0 AND n_tokens >= 0 AND sum_logprob <= 0) IS NOT TRUE) AS n_wrong
    FROM rank_counts
),
of_documents AS (
    SELECT
        count_if(run_id IS DISTINCT FROM $run_id) AS n_other,
        count_if((doc_id >= 0 AND n_tokens >= 0 AND n_scored >= 0 AND least(n_bytes, n_bytes_scored, 0) = 0) IS NOT TRUE) AS n_wrong,
        count(*) - count(DISTINCT doc_id) AS n_repeated,
        count_if(correct IS NOT FALSE AND n_scored > 0) AS n,
        count_if(correct IS NOT FALSE AND n_scored = 0) AS n_skipped,
        coalesce(sum(n_bytes) FILTER (WHERE correct IS NOT FALSE AND n_scored > 0), 0) AS n_bytes,
        coalesce(sum(n_bytes_scored) FILTER (WHERE correct IS NOT FALSE), 0) AS n_bytes_scored
    FROM documents
),
miscounted_ranks AS (
    SELECT greater, ties
    FROM (
        SELECT greater, ties, count(*) AS n, sum(logprob::DOUBLE) AS nats FROM tokens WHERE correct IS NOT FALSE GROUP BY ALL
        UNION ALL
        SELECT greater, ties, -n_tokens, -sum_logprob FROM rank_counts
    )
    GROUP BY ALL
    HAVING sum(n) <> 0 OR abs(sum(nats)) > 1e-6 * sum(abs(nats)) -- float32 rounds by 6e-8
),
miscounted_documents AS (
    SELECT doc_id
    FROM (
        SELECT doc_id, count(*) AS n FROM tokens GROUP BY doc_id
        UNION ALL
        SELECT doc_id, -n_scored FROM documents
    )
    GROUP BY doc_id
    HAVING sum(n) <> 0
)
SELECT coalesce(
    if(t.n_other > 0, 'tokens.parquet has rows of another run', NULL),
    if(r.n_other > 0, 'rank_counts.parquet has rows of another run', NULL),
    if(d.n_other > 0, 'documents.parquet has rows of another run', NULL),
    if(t.n <> $n_tokens, format('{:,} rows of tokens, expected {:,}', t.n, $n_tokens::BIGINT), NULL),
    if(t.n_misplaced > 0, format('tokens.parquet has {:,} rows with a place or a token out of range', t.n_misplaced), NULL),
    if(t.n_misranked > 0, format('tokens.parquet has {:,} rows with greater or ties out of range', t.n_misranked), NULL),
    if(t.n_improbable > 0, format('tokens.parquet has {:,} rows with a logprob above 0 or none', t.n_improbable), NULL),
    if(r.n_wrong > 0, format('rank_counts.parquet has {:,} rows with a value out of range', r.n_wrong), NULL),
    if(d.n_wrong > 0, format('documents.parquet has {:,} rows with a value out of range', d.n_wrong), NULL),
    if(d.n_repeated > 0, 'documents.parquet has a document twice', NULL),
    (SELECT 'rank_counts.parquet does not count the tokens with greater ' || coalesce(min(greater)::VARCHAR, 'unknown')
        FROM miscounted_ranks HAVING count(*) > 0),
    (SELECT format('documents.parquet does not count the tokens of document {}', min(doc_id)) FROM miscounted_documents HAVING count(*) > 0),
    if(d.n <> $n_documents, format('{:,} documents with a scored token, expected {:,}', d.n, $n_documents::BIGINT), NULL),
    if(d.n_skipped <> $n_skipped, format('{:,} documents without one, expected {:,}', d.n_skipped, $n_skipped::BIGINT), NULL),
    if(d.n_bytes <> $n_bytes::BIGINT, format('documents have {:,} bytes, expected {:,}', d.n_bytes::BIGINT, $n_bytes::BIGINT), NULL),
    if(d.n_bytes_scored <> $n_bytes_scored::BIGINT,
        format('documents have {:,} scored bytes, expected {:,}', d.n_bytes_scored::BIGINT, $n_bytes_scored::BIGINT), NULL),
    if(abs(t.nats + $cross_entropy_nats * t.n) > 1e-6 * abs(t.nats),
        format('the tokens have a cross-entropy of {} nats, expected {}', -t.nats / t.n, $cross_entropy_nats::DOUBLE), NULL)
) AS fault
FROM of_tokens AS t, of_ranks AS r, of_documents AS d;
