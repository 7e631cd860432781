-- The points of experiments/not_a_transformer.yaml, as mamba2_1.24m.csv and mamba2_8m.csv have them: cross-entropy and RBP_1 of both ladders.
-- parameters: none; for `python -m rbpx sql`.
-- returns: a row a model and text. S, total_params and D count parameters and tokens, C is 6 total_params D; revision is D in
-- three digits, so that models of one budget are one group.
SELECT
    o.family,
    o.size,
    format('{:.3g}m', o.training_tokens / 1e6) AS revision,
    o.non_embedding_params::BIGINT AS S,
    r.total_params,
    o.training_tokens AS D,
    o.training_flops AS C,
    o.dataset,
    o.k,
    round(o.rbp, 8) AS rbp,
    o.n_tokens,
    round(o.cross_entropy_nats, 6) AS cross_entropy_nats
FROM rbp_at(1, 'pessimistic') AS o
JOIN runs AS r USING (run_id)
WHERE o.family IN ('mamba2', 'transformer')
ORDER BY o.dataset, D, o.family, S
