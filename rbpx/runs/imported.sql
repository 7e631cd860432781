-- Imported observations under one tie rule (or that of their protocol), of the sources, families and datasets asked for.
-- $source, $family, $size, $dataset, $protocol, $revision: VARCHAR[], or NULL for all. $ties: VARCHAR, or NULL for
-- optimistic ties of protocol official and pessimistic ties of the others.
-- returns: source, family, size, dataset, text_hash, protocol, dtype, revision, non_embedding_params, k, n, ties, rbp,
--          n_tokens, cross_entropy_nats (nats), bits_per_byte, accuracy (share), run_id, training_seed, model,
--          training_tokens, training_flops, training_step, unique_tokens, variant, weight, active_params, total_params, schedule,
--          schedule_tokens, lr, warmup_tokens, decay_tokens, lr_decay, final_lr, n_samples, n_correct, item (attempts at it), and vary_NAME where there are such
SELECT * EXCLUDE (cross_entropy_nats_stderr, bits_per_byte_stderr, accuracy_stderr)
FROM imported
WHERE coalesce(ties = coalesce($ties, CASE WHEN protocol = 'official' THEN 'optimistic' ELSE 'pessimistic' END), true) -- null where there is no RBP
    AND ($source IS NULL OR list_contains($source, source))
    AND ($family IS NULL OR list_contains($family, family))
    AND ($size IS NULL OR list_contains($size, size))
    AND ($dataset IS NULL OR list_contains($dataset, dataset))
    AND ($protocol IS NULL OR list_contains($protocol, protocol))
    AND ($revision IS NULL OR list_contains($revision, revision))
ORDER BY source, family, dataset, text_hash, protocol, dtype, revision, variant, non_embedding_params, training_seed, size, model,
    training_tokens, training_flops, training_step, unique_tokens, n, k
