-- RBP_k of every run at one k under one tie rule, measured and imported; same columns as `observations`.
-- $k INTEGER, $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: source, family, size, model, revision, non_embedding_params, dataset, text_hash, protocol, dtype, k, n, ties,
-- rbp (share), n_tokens, cross_entropy_nats (nats), cross_entropy_nats_stderr, bits_per_byte, bits_per_byte_stderr,
-- accuracy (share), accuracy_stderr, training_tokens, training_flops, training_step, unique_tokens, training_seed,
-- variant, active_params, total_params, run_id
SELECT *
FROM rbp_at($k, $ties)
ORDER BY source, family, dataset, non_embedding_params, run_id
