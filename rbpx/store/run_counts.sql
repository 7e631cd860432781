-- Sums over the rows of one run, to be checked against its manifest: tokens, their positions, their ranks, documents.
-- $run_id: VARCHAR.
-- Wrong choices of items have tokens and documents, and are counted nowhere else.
-- returns: n_tokens, n_rows, n_places, n_strangers, n_counted, n_apart, n_scored, n_documents, n_scored_documents, n_misplaced,
--          cross_entropy_nats
WITH rows AS (SELECT * FROM tokens WHERE run_id = $run_id),
own AS (SELECT * FROM rows WHERE correct IS NOT FALSE),
counted AS (SELECT greater, ties, count(*) AS n_tokens FROM own GROUP BY ALL),
stored AS (SELECT greater, ties, sum(n_tokens)::BIGINT AS n_tokens FROM rank_counts WHERE run_id = $run_id GROUP BY ALL),
per_document AS (SELECT doc_id, correct, count(*) AS n_tokens FROM rows GROUP BY ALL),
all_declared AS (SELECT doc_id, correct, n_scored FROM documents WHERE run_id = $run_id),
declared AS (SELECT doc_id, n_scored FROM all_declared WHERE correct IS NOT FALSE)
SELECT
    (SELECT count(*) FROM own) AS n_tokens,
    (SELECT count(*) FROM rows) AS n_rows,
    (SELECT count(*) FROM (SELECT DISTINCT doc_id, position FROM rows)) AS n_places, -- each occurs once
    (SELECT count(*) FROM tokens WHERE run_id <> $run_id) AS n_strangers,
    (SELECT coalesce(sum(n_tokens), 0)::BIGINT FROM stored) AS n_counted,
    (
        SELECT count(*) FROM counted AS c
        FULL JOIN stored AS s ON c.greater IS NOT DISTINCT FROM s.greater AND c.ties IS NOT DISTINCT FROM s.ties
        WHERE c.n_tokens IS DISTINCT FROM s.n_tokens
    ) AS n_apart, -- pairs of (greater, ties) that rank_counts counts differently
    (SELECT coalesce(sum(n_scored), 0)::BIGINT FROM declared) AS n_scored,
    (SELECT count(*) FROM declared) AS n_documents,
    (SELECT count(*) FROM declared WHERE n_scored > 0) AS n_scored_documents,
    (
        SELECT count(*) FROM per_document AS p FULL JOIN all_declared AS s USING (doc_id)
        WHERE coalesce(p.n_tokens, 0) IS DISTINCT FROM s.n_scored OR (p.doc_id IS NOT NULL AND p.correct IS DISTINCT FROM s.correct)
    ) AS n_misplaced, -- documents with another number of tokens than they say
    (SELECT -avg(logprob::DOUBLE) FROM own) AS cross_entropy_nats
