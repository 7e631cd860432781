-- Relations derived from the others: `observations` and the macro `rbp_at`, measured and imported results together.
-- returns: nothing; creates both, in memory and in the index alike, and `true_tokens`.

-- The scored tokens of texts, of targets and of right choices: what laws are about. `tokens` has those of wrong choices too.
CREATE OR REPLACE VIEW true_tokens AS FROM tokens WHERE correct IS NOT FALSE;
CREATE OR REPLACE MACRO true_tokens_of(run_ids) AS TABLE FROM tokens_of(run_ids) WHERE correct IS NOT FALSE;

-- Tokens of another engine may lack a count: where `greater` is null, `ties` are the others with its logit or a greater one;
-- where both are, it told no rank. A rank that cannot be known is an error, never a miss.
CREATE OR REPLACE MACRO rank_under(greater, n_ties, ties) AS
    CASE ties
        WHEN 'pessimistic' THEN CASE WHEN n_ties IS NULL THEN error('rank untold: pessimistic') ELSE coalesce(greater, 0) + n_ties + 1 END
        WHEN 'optimistic' THEN CASE WHEN greater IS NULL THEN error('rank untold: optimistic') ELSE greater + 1 END
        WHEN 'mid' THEN CASE WHEN greater IS NULL OR n_ties IS NULL THEN error('rank untold: mid') ELSE greater + n_ties / 2 + 1 END
        ELSE error('ties is ''' || ties || '''; known: pessimistic, optimistic, mid')
    END;

CREATE OR REPLACE MACRO is_told(greater, n_ties, ties) AS
    CASE ties WHEN 'pessimistic' THEN n_ties IS NOT NULL WHEN 'optimistic' THEN greater IS NOT NULL ELSE greater + n_ties IS NOT NULL END;

-- Measured runs with the columns of `observations`; k, ties and rbp, which follow from the ranks, are null.
CREATE OR REPLACE VIEW measured AS
    SELECT
        'measured' AS source, family, size, model, revision,
        non_embedding_params::DOUBLE AS non_embedding_params, dataset, text_hash, protocol, dtype,
        NULL::INTEGER AS k, 1 AS n, NULL::VARCHAR AS ties, NULL::DOUBLE AS rbp, n_tokens, cross_entropy_nats,
        NULL::DOUBLE AS cross_entropy_nats_stderr,
        cross_entropy_nats * n_tokens / (ln(2) * nullif(n_bytes_scored, 0)) AS bits_per_byte,
        NULL::DOUBLE AS bits_per_byte_stderr, NULL::DOUBLE AS accuracy, NULL::DOUBLE AS accuracy_stderr,
        training_tokens, training_flops, training_step, unique_tokens, training_seed, variant,
        active_params::DOUBLE AS active_params, total_params, run_id, vocab_size
    FROM runs;

-- RBP_k = Pr(rank <= k) of every run, at any k under any tie rule: FROM rbp_at(42, 'mid'). Imported results have no
-- ranks and are only there at the k and the tie rule that they were published with.
CREATE OR REPLACE MACRO rbp_at(k, ties) AS TABLE
    SELECT
        r.* EXCLUDE (vocab_size)
        REPLACE (k::INTEGER AS k, ties AS ties, coalesce(h.n_hits, 0) / h.n_tokens AS rbp)
    FROM measured AS r
    JOIN ( -- no WITH, which DuckDB 1 loses in a macro of a file
        SELECT
            c.run_id,
            sum(c.n_tokens) FILTER (WHERE rank_under(c.greater, c.ties, ties) <= k)::BIGINT AS n_hits,
            sum(c.n_tokens)::BIGINT AS n_tokens
        FROM rank_counts AS c
        WHERE is_told(c.greater, c.ties, ties)
        GROUP BY c.run_id
    ) AS h USING (run_id)
    UNION ALL BY NAME -- imports need not have every column
    SELECT i.* FROM imported AS i
    WHERE CASE WHEN rank_under(0, 0, ties) = 1 THEN i.k = k AND i.n = 1 AND i.ties = ties END;  -- an unknown rule is an error here too

CREATE OR REPLACE VIEW observations AS
    WITH rules AS (SELECT unnest(['pessimistic', 'optimistic', 'mid']) AS ties),
    grid AS (SELECT unnest([1, 10, 100, 500, 1000, 2500, 10000]) AS k),
    hits AS (
        SELECT
            c.run_id, g.k, t.ties,
            sum(CASE WHEN rank_under(c.greater, c.ties, t.ties) <= g.k THEN c.n_tokens ELSE 0 END)::BIGINT AS n_hits,
            sum(c.n_tokens)::BIGINT AS n_tokens
        FROM rank_counts AS c, rules AS t, grid AS g
        WHERE is_told(c.greater, c.ties, t.ties)
        GROUP BY ALL
    )
    SELECT r.* EXCLUDE (vocab_size) REPLACE (h.k AS k, h.ties AS ties, h.n_hits / h.n_tokens AS rbp)
    FROM measured AS r
    JOIN hits AS h USING (run_id)
    WHERE h.k < r.vocab_size
    UNION ALL BY NAME
    FROM imported;
