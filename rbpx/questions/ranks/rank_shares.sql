-- The distribution of the ranks of runs: the share of tokens in each bin over the number of ranks in it.
-- $run_ids: VARCHAR[]. $ties: VARCHAR. $edges: INTEGER[], where bins begin, from 1 up; the last one ends before the last edge.
-- returns: run_id, first_rank, last_rank, n_tokens, share_per_rank
WITH bins AS (
    SELECT unnest($edges[:-2]) AS first_rank, unnest($edges[2:]) - 1 AS last_rank
),
ranked AS (
    SELECT run_id, rank_under(greater, ties, $ties) AS rank, n_tokens
    FROM rank_counts
    WHERE list_contains($run_ids, run_id)
),
whole AS (SELECT run_id, sum(n_tokens)::BIGINT AS n_tokens FROM ranked GROUP BY run_id),
binned AS (
    SELECT r.run_id, b.first_rank, b.last_rank, sum(r.n_tokens)::BIGINT AS n_tokens
    FROM ranked AS r
    JOIN bins AS b ON r.rank >= b.first_rank AND r.rank < b.last_rank + 1
    GROUP BY ALL
)
SELECT
    b.run_id, b.first_rank, b.last_rank, b.n_tokens,
    b.n_tokens / w.n_tokens / (b.last_rank - b.first_rank + 1) AS share_per_rank
FROM binned AS b
JOIN whole AS w USING (run_id)
ORDER BY b.run_id, b.first_rank
