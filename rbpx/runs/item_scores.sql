-- What one run gave each item of a task, or its right choice; a text that was read as one target is an item of its own.
-- Of equally likely choices the first counts, and the lowest id where logits tie.
-- $run_id VARCHAR; $ties VARCHAR (pessimistic, optimistic, mid).
-- returns: item, is_right (1 or 0: the right choice has the highest log-likelihood; without choices each token is
--          greedy; NULL for texts), is_right_by_characters, is_right_by_bytes (with log-likelihoods over the length of
--          the choice; NULL without choices), chance (one over the number of choices; NULL without), probability (of the
--          right choice among the choices, or of the target), nats (of the target or right choice), n_bytes_scored,
--          n_words (of a text; NULL for items), is_tied (a tie decides: the right choice is as likely as another, and
--          none is likelier; without choices, greedy decoding hangs on one), ranks (of its tokens, in order), category,
--          domain
WITH scored AS (
    SELECT
        d.doc_id, coalesce(d.item, d.doc_id) AS item, d.choice, d.correct, d.n_characters, d.n_answer_bytes, d.n_words,
        d.n_bytes_scored, d.category, d.domain, sum(t.logprob::DOUBLE) AS loglikelihood, max(t.greater) = 0 AS is_greedy,
        max(t.greater) = 0 AND max(t.ties) > 0 AS hangs_on_tie,
        list(rank_under(t.greater, t.ties, $ties)::DOUBLE ORDER BY t.position) AS ranks
    FROM documents_of([$run_id]) AS d
    JOIN tokens_of([$run_id]) AS t USING (doc_id)
    GROUP BY ALL
),
compared AS (
    SELECT
        *, max(loglikelihood) OVER (PARTITION BY item) AS best,
        count(*) OVER (PARTITION BY item, loglikelihood) AS n_alike,
        row_number() OVER (PARTITION BY item ORDER BY loglikelihood DESC, choice) AS place,
        row_number() OVER (PARTITION BY item ORDER BY loglikelihood / n_characters DESC, choice) AS by_characters,
        row_number() OVER (PARTITION BY item ORDER BY loglikelihood / n_answer_bytes DESC, choice) AS by_bytes
    FROM scored
)
SELECT
    item, CASE WHEN correct THEN place = 1 WHEN n_characters IS NOT NULL THEN is_greedy END::DOUBLE AS is_right,
    CASE WHEN correct THEN by_characters = 1 END::DOUBLE AS is_right_by_characters,
    CASE WHEN correct THEN by_bytes = 1 END::DOUBLE AS is_right_by_bytes,
    CASE WHEN correct THEN 1 / count(*) OVER (PARTITION BY item) END AS chance,
    exp(loglikelihood - CASE WHEN correct THEN best ELSE 0 END)
    / CASE WHEN correct THEN sum(exp(loglikelihood - best)) OVER (PARTITION BY item) ELSE 1 END AS probability,
    -loglikelihood AS nats, n_bytes_scored::DOUBLE AS n_bytes_scored, n_words::DOUBLE AS n_words,
    CASE WHEN correct THEN loglikelihood = best AND n_alike > 1 ELSE hangs_on_tie END AS is_tied, ranks, category, domain
FROM compared
QUALIFY correct IS NOT FALSE
ORDER BY doc_id
