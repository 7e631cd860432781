-- What is known of every model on one task.
-- $dataset VARCHAR.
-- returns: source, family, size, non_embedding_params, k, rbp (share), cross_entropy_nats (nats), bits_per_byte, accuracy (share)
SELECT source, family, size, non_embedding_params, k, rbp, cross_entropy_nats, bits_per_byte, accuracy
FROM observations
WHERE dataset = $dataset
ORDER BY ALL
