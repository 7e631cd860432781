-- Sums over the rows of one run, to be checked against its manifest: tokens, their positions, their ranks, documents.
-- $run_id: VARCHAR, $vocab_size: BIGINT, $relative: DOUBLE, by which two sums of the same numbers may differ.
-- Wrong choices of items have tokens and documents, and are counted nowhere else.
-- returns: n_tokens, n_rows, n_places, n_strangers, n_beyond, n_counted, n_apart, n_sums_apart, n_scored, n_documents,
--          n_scored_documents, n_bytes, n_bytes_scored, n_misplaced, cross_entropy_nats
WITH rows AS (SELECT * FROM tokens WHERE run_id = $run_id),
own AS (SELECT * FROM rows WHERE correct IS NOT FALSE),
counted AS (SELECT greater, ties, count(*) AS n_tokens, sum(logprob::DOUBLE) AS sum_logprob FROM own GROUP BY ALL),
stored AS (
    SELECT greater, ties, sum(n_tokens)::BIGINT AS n_tokens, sum(sum_logprob) AS sum_logprob
    FROM rank_counts WHERE run_id = $run_id GROUP BY ALL
),
per_document AS (SELECT doc_id, correct, count(*) AS n_tokens FROM rows GROUP BY ALL),
all_declared AS (SELECT doc_id, correct, n_scored, n_bytes, n_bytes_scored FROM documents WHERE run_id = $run_id),
declared AS (SELECT * FROM all_declared WHERE correct IS NOT FALSE)
SELECT
    (SELECT count(*) FROM own) AS n_tokens,
    (SELECT count(*) FROM rows) AS n_rows,
    (SELECT count(*) FROM (SELECT DISTINCT doc_id, position FROM rows)) AS n_places, -- each occurs once
    (
        SELECT count(*)
        FROM (SELECT run_id FROM tokens UNION ALL SELECT run_id FROM rank_counts UNION ALL SELECT run_id FROM documents)
        WHERE run_id IS DISTINCT FROM $run_id
    ) AS n_strangers,
    (
        SELECT count(*) FROM rows
        WHERE token_id NOT BETWEEN 0 AND $vocab_size - 1 OR greater < 0 OR ties < 0
            OR coalesce(greater, 0)::BIGINT + coalesce(ties, 0) >= $vocab_size
            OR NOT coalesce(isfinite(logprob) AND logprob <= 0.001, false)
    ) AS n_beyond, -- ids and ranks that no vocabulary of that size has, and what is no log-probability
    (SELECT coalesce(sum(n_tokens), 0)::BIGINT FROM stored) AS n_counted,
    (
        SELECT count(*) FROM counted AS c
        FULL JOIN stored AS s ON c.greater IS NOT DISTINCT FROM s.greater AND c.ties IS NOT DISTINCT FROM s.ties
        WHERE c.n_tokens IS DISTINCT FROM s.n_tokens
    ) AS n_apart, -- pairs of (greater, ties) that rank_counts counts differently
    (
        SELECT count(*) FROM counted AS c JOIN stored AS s
        ON c.greater IS NOT DISTINCT FROM s.greater AND c.ties IS NOT DISTINCT FROM s.ties
        WHERE NOT coalesce(abs(c.sum_logprob - s.sum_logprob) <= $relative * abs(c.sum_logprob), false)
    ) AS n_sums_apart, -- pairs whose log-probabilities rank_counts adds up differently
    (SELECT coalesce(sum(n_scored), 0)::BIGINT FROM declared) AS n_scored,
    (SELECT count(*) FROM declared) AS n_documents,
    (SELECT count(*) FROM declared WHERE n_scored > 0) AS n_scored_documents,
    (SELECT sum(n_bytes)::BIGINT FROM declared WHERE n_scored > 0) AS n_bytes, -- null, as is the next, where no document says
    (SELECT sum(n_bytes_scored)::BIGINT FROM declared) AS n_bytes_scored,
    (
        SELECT count(*) FROM per_document AS p FULL JOIN all_declared AS s USING (doc_id)
        WHERE coalesce(p.n_tokens, 0) IS DISTINCT FROM s.n_scored OR (p.doc_id IS NOT NULL AND p.correct IS DISTINCT FROM s.correct)
    ) AS n_misplaced, -- documents with another number of tokens than they say
    (SELECT -avg(logprob::DOUBLE) FROM own) AS cross_entropy_nats
