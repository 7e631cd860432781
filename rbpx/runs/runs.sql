-- The newest run of each size and training seed, of the families and datasets asked for: what one grid is fitted to.
-- $family, $size, $dataset, $protocol, $revision, $cell_keys: VARCHAR[], or NULL for all.
-- returns: cell_key, run_id, source, family, size, dataset, text_hash, protocol, window, stride, padding, bos, dtype,
--          revision, non_embedding_params, vocab_size, n_documents, n_skipped, n_tokens, cross_entropy_nats,
--          training_seed, model, active_params, total_params, training_tokens, training_flops, training_step, unique_tokens, variant, engine
SELECT
    cell_key, run_id, 'measured' AS source, family, size, dataset, text_hash, protocol, "window",
    stride, coalesce(padding, 'counted') AS padding, coalesce(bos, 'tokenizer') AS bos, -- as runs of older versions did
    dtype, revision,
    non_embedding_params, vocab_size, n_documents, n_skipped, n_tokens, cross_entropy_nats, training_seed,
    model, active_params, total_params, training_tokens, training_flops, training_step, unique_tokens, variant,
    engine || coalesce(' ' || engine_version, '') AS engine
FROM runs
WHERE ($family IS NULL OR list_contains($family, family))
    AND ($size IS NULL OR list_contains($size, size))
    AND ($dataset IS NULL OR list_contains($dataset, dataset))
    AND ($protocol IS NULL OR list_contains($protocol, protocol))
    AND ($revision IS NULL OR list_contains($revision, revision))
    AND ($cell_keys IS NULL OR list_contains($cell_keys, cell_key))
QUALIFY row_number() OVER (
    PARTITION BY family, size, dataset, text_hash, protocol, "window", stride, coalesce(runs.padding, 'counted'),
        coalesce(runs.bos, 'tokenizer'), dtype, revision, training_seed, variant,
        runs.engine, engine_version
    ORDER BY asked_at DESC, cell_key
) = 1
ORDER BY family, dataset, text_hash, protocol, dtype, revision, non_embedding_params, training_seed, size
