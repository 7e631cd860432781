-- Each document of one run cut into consecutive sequences of n scored tokens, from its first token on, for each n asked
-- for: how many there are, how many pass (all their ranks at most k), and how their hits gather. What is left at the end
-- of a document is dropped; positions that were not scored are bridged.
-- $run_id VARCHAR; $k INTEGER; $ties VARCHAR (pessimistic, optimistic, mid); $lengths INTEGER[].
-- returns: n (scored tokens), doc_id, n_sequences, n_passed, n_hits, n_pairs (ordered pairs of hits of one sequence)
WITH scored AS (
    SELECT
        doc_id, rank_under(greater, ties, $ties) <= $k AS hit,
        row_number() OVER (PARTITION BY doc_id ORDER BY position) - 1 AS nth
    FROM true_tokens
    WHERE run_id = $run_id
),
lengths AS (SELECT unnest($lengths) AS n),
sequences AS (
    SELECT n, doc_id, nth // n AS sequence, count(*) FILTER (WHERE hit) AS n_hits
    FROM scored, lengths
    GROUP BY ALL
    HAVING count(*) = n
)
SELECT
    n, doc_id, count(*) AS n_sequences, count(*) FILTER (WHERE n_hits = n) AS n_passed, sum(n_hits)::BIGINT AS n_hits,
    sum(n_hits * (n_hits - 1))::BIGINT AS n_pairs
FROM sequences
GROUP BY ALL
ORDER BY n, doc_id
