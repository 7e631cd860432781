-- -ln RBP_k and cross-entropy of the runs of one group at several k: the points of the laws in S and in k.
-- $run_ids: VARCHAR[]. $family, $dataset: VARCHAR. $k: INTEGER[]. $ties: VARCHAR.
-- returns: size, non_embedding_params, k, rbp (share), neg_ln_rbp (nats), cross_entropy_nats (nats), n_tokens, run_id
WITH grid AS (SELECT unnest($k) AS k),
counted AS (
    SELECT
        c.run_id, g.k, sum(c.n_tokens)::BIGINT AS n_tokens,
        sum(CASE WHEN rank_under(c.greater, c.ties, $ties) <= g.k THEN c.n_tokens ELSE 0 END) / sum(c.n_tokens) AS rbp
    FROM rank_counts AS c, grid AS g
    WHERE list_contains($run_ids, c.run_id)
    GROUP BY ALL
),
known AS (
    SELECT r.size, r.non_embedding_params, c.k, c.rbp, r.cross_entropy_nats, c.n_tokens, r.run_id
    FROM counted AS c
    JOIN runs AS r USING (run_id)
    WHERE r.family = $family AND r.dataset = $dataset
    UNION
    SELECT size, non_embedding_params, k, rbp, cross_entropy_nats, n_tokens, run_id
    FROM observations
    WHERE source <> 'measured' AND list_contains($run_ids, run_id) AND family = $family AND dataset = $dataset
        AND ties = $ties AND n = 1 AND list_contains($k, k)
)
SELECT
    size, non_embedding_params, k, rbp,
    CASE WHEN rbp > 0 THEN -ln(rbp) END AS neg_ln_rbp, cross_entropy_nats, n_tokens, run_id
FROM known
ORDER BY non_embedding_params, size, k
