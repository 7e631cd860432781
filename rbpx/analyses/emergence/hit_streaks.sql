-- How long the runs of hits are: for each document of one run, the maximal sequences of consecutive scored tokens whose
-- rank is at most k. Positions that were not scored are bridged: the scored tokens before and after them are neighbours.
-- $run_id VARCHAR; $k INTEGER; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, length (scored tokens), n_streaks
WITH scored AS (
    SELECT
        doc_id, position, rank_under(greater, ties, $ties) <= $k AS hit,
        row_number() OVER (PARTITION BY doc_id ORDER BY position) AS nth
    FROM true_tokens
    WHERE run_id = $run_id
),
-- Hits that follow each other have one difference between their number among the tokens and among the hits.
placed AS (
    SELECT doc_id, nth - row_number() OVER (PARTITION BY doc_id ORDER BY position) AS misses_before
    FROM scored
    WHERE hit
),
streaks AS (
    SELECT doc_id, misses_before, count(*) AS length
    FROM placed
    GROUP BY ALL
)
SELECT doc_id, length, count(*) AS n_streaks
FROM streaks
GROUP BY ALL
ORDER BY doc_id, length
