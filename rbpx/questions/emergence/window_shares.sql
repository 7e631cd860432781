-- The share of windows of N consecutive scored tokens of a document that are all hits, rank <= k.
-- $run_ids: VARCHAR[]. $ties: VARCHAR. $k, $n: INTEGER[].
-- returns: run_id, k, n, p, n_windows
WITH grid AS (SELECT unnest($k) AS k),
lengths AS (SELECT unnest($n) AS n),
placed AS (
    SELECT
        t.run_id, t.doc_id, g.k, rank_under(t.greater, t.ties, $ties) <= g.k AS is_hit,
        row_number() OVER (PARTITION BY t.run_id, t.doc_id, g.k ORDER BY t.position) AS place
    FROM true_tokens AS t, grid AS g
    WHERE list_contains($run_ids, t.run_id)
),
streaks AS ( -- how many hits in a row end at each token
    SELECT
        run_id, k, place,
        place - coalesce(
            max(CASE WHEN NOT is_hit THEN place END)
                OVER (PARTITION BY run_id, doc_id, k ORDER BY place ROWS UNBOUNDED PRECEDING), 0
        ) AS streak
    FROM placed
)
SELECT s.run_id, s.k, l.n, avg((s.streak >= l.n)::INTEGER) AS p, count(*) AS n_windows
FROM streaks AS s
JOIN lengths AS l ON s.place >= l.n
GROUP BY ALL
ORDER BY s.run_id, s.k, l.n
