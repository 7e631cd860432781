-- Pairs of ranks of the tokens of some documents of one run and of the same tokens measured again, a row a pair and
-- document. A token that only one side has stands alone, the other rank NULL; where an engine gives no ties, a token
-- changes if its rank does.
-- $run_id VARCHAR; $doc_ids INTEGER[]; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: doc_id, rank, rank_again, n_tokens, n_changed (of which greater or ties differ), sum_logprob,
--          sum_logprob_again (nats), largest_logprob_move (nats, absolute)
WITH stored AS (
    SELECT doc_id, position, token_id, greater, ties, logprob::DOUBLE AS logprob, TRUE AS is_there
    FROM tokens_of([$run_id])
    WHERE list_contains($doc_ids, doc_id)
),
again AS (
    SELECT doc_id, position, token_id, greater, ties, logprob::DOUBLE AS logprob, TRUE AS is_there
    FROM given
)
SELECT
    doc_id,
    CASE WHEN s.is_there THEN rank_under(s.greater, s.ties, $ties)::DOUBLE END AS rank,
    CASE WHEN a.is_there THEN rank_under(a.greater, a.ties, $ties)::DOUBLE END AS rank_again,
    count(*) AS n_tokens,
    count(*) FILTER (WHERE CASE
        WHEN s.greater IS NULL THEN s.ties <> coalesce(a.greater, 0) + a.ties
        WHEN s.ties IS NULL THEN s.greater <> a.greater
        ELSE s.greater <> a.greater OR s.ties <> a.ties
    END) AS n_changed,
    sum(s.logprob) AS sum_logprob, sum(a.logprob) AS sum_logprob_again,
    max(abs(a.logprob - s.logprob)) AS largest_logprob_move
FROM stored AS s
FULL JOIN again AS a USING (doc_id, position, token_id)
GROUP BY ALL
ORDER BY doc_id, rank, rank_again
