-- How often each rank occurs in each document of one run: the counts that documents are resampled from. They come in no
-- order; `rbpx.groups.document_ranks` sorts them.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, rank, n_tokens, sum_logprob (nats)
SELECT
    doc_id, rank_under(greater, ties, $ties)::DOUBLE AS rank, count(*) AS n_tokens, sum(logprob::DOUBLE) AS sum_logprob
FROM true_tokens
WHERE run_id = $run_id
GROUP BY ALL
