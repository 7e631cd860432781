-- How many tokens of each document of a run have a rank up to each of some, with their log-probabilities.
-- $run_id: VARCHAR. $ties: VARCHAR. $edges: DOUBLE[], ascending.
-- returns: doc_id, rank (the least of $edges that is not below it; infinity), n_tokens, sum_logprob (nats), by document and rank
WITH counted AS (
    SELECT doc_id, histogram(rank_under(greater, ties, $ties)::DOUBLE, $edges) AS hits, sum(logprob::DOUBLE) AS sum_logprob
    FROM true_tokens_of([$run_id])
    GROUP BY doc_id
    ORDER BY doc_id
)
SELECT
    doc_id, unnest(map_keys(hits)) AS rank, unnest(map_values(hits))::BIGINT AS n_tokens,
    unnest(list_resize([sum_logprob], len(map_keys(hits)), 0.0)) AS sum_logprob
FROM counted
