-- Features of each scored token of one run without its own rank: place, frequency, and how a smaller model did on it and
-- on the token before. The first scored token of a document is left out.
-- $run_id, $smaller_run_id VARCHAR (two runs of the same tokens); $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, rank (in the run itself), ln_position, ln_frequency (share of the token's id among the scored tokens),
--          smaller_neg_logprob (nats), smaller_ln_rank, smaller_neg_logprob_before (nats)
WITH smaller AS (
    SELECT
        doc_id, position, -logprob::DOUBLE AS neg_logprob, rank_under(greater, ties, $ties)::DOUBLE AS rank,
        lag(-logprob::DOUBLE) OVER (PARTITION BY doc_id ORDER BY position) AS neg_logprob_before,
        count(*) OVER (PARTITION BY token_id) / count(*) OVER () AS frequency
    FROM true_tokens_of([$smaller_run_id])
)
SELECT
    t.doc_id, rank_under(t.greater, t.ties, $ties) AS rank, ln(t.position) AS ln_position,
    ln(s.frequency) AS ln_frequency, s.neg_logprob AS smaller_neg_logprob, ln(s.rank) AS smaller_ln_rank,
    s.neg_logprob_before AS smaller_neg_logprob_before
FROM true_tokens_of([$run_id]) AS t
JOIN smaller AS s USING (doc_id, position)
WHERE s.neg_logprob_before IS NOT NULL
ORDER BY t.doc_id, t.position
