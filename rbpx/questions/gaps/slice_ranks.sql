-- How often each rank occurs in each document, among the chosen rows of `scored_tokens`, and which tokens these are: sizes
-- that chose the same tokens have the same bits, taken together.
-- returns: doc_id, rank, n_tokens, sum_logprob (nats), token_bits
SELECT
    doc_id, rank, count(*) AS n_tokens, sum(logprob::DOUBLE) AS sum_logprob,
    bit_xor(hash(doc_id, position, token_id)) AS token_bits
FROM given
GROUP BY ALL
ORDER BY doc_id, rank
