-- Which token ids a family predicts better the larger it is: for each occurrence the slope of its nats on ln S over all
-- sizes, averaged by token id, with what that leaves at the smallest and the largest size. Occurrences that were not scored
-- at every size are left out. Standard errors are over documents, drawn whole: of the mean slope over those that hold the
-- id, of its share over all.
-- $run_ids VARCHAR[], one a size, in order of S; $ln_sizes DOUBLE[], ln S of each; $k INTEGER; $ties VARCHAR (pessimistic,
-- optimistic, mid).
-- returns: token_id, text, n_tokens, n_documents, slope (nats per unit of ln S), slope_stderr (NULL in one document),
--          smallest_nats, largest_nats (means), smallest_rbp, largest_rbp (shares of rank at most k), fall_nats (from
--          the smallest to the largest size, summed), share (of the fall of all token ids; NULL where that is no fall),
--          share_stderr (NULL also where the text is one document)
WITH sizes AS (
    SELECT unnest($run_ids) AS run_id, unnest($ln_sizes) AS ln_S
),
seen AS (
    SELECT
        t.doc_id, t.position, t.token_id, s.ln_S, -t.logprob::DOUBLE AS nats,
        rank_under(t.greater, t.ties, $ties) <= $k AS hit,
        s.run_id = $run_ids[1] AS is_smallest, s.run_id = $run_ids[len($run_ids)] AS is_largest
    FROM true_tokens AS t
    JOIN sizes AS s USING (run_id)
),
occurrences AS (
    SELECT
        doc_id, token_id, regr_slope(nats, ln_S) AS slope,
        max(nats) FILTER (is_smallest) AS smallest_nats, max(nats) FILTER (is_largest) AS largest_nats,
        max(hit::INTEGER) FILTER (is_smallest) AS smallest_hit, max(hit::INTEGER) FILTER (is_largest) AS largest_hit
    FROM seen
    GROUP BY doc_id, position, token_id
    HAVING count(*) = len($run_ids)
),
by_document AS (
    SELECT
        token_id, doc_id, count(*) AS n, sum(slope) AS slope, sum(smallest_nats - largest_nats) AS fall,
        sum(smallest_nats) AS smallest_nats, sum(largest_nats) AS largest_nats,
        sum(smallest_hit) AS smallest_hits, sum(largest_hit) AS largest_hits
    FROM occurrences
    GROUP BY token_id, doc_id
),
documents_whole AS (
    SELECT doc_id, sum(fall) AS whole
    FROM by_document
    GROUP BY doc_id
),
text_whole AS (
    SELECT CASE WHEN sum(whole) > 0 THEN sum(whole) END AS whole, sum(whole * whole) AS squares, count(*) AS n_documents
    FROM documents_whole
),
types AS (
    SELECT
        b.token_id, sum(b.n) AS n_tokens, count(*) AS n_documents, sum(b.slope) / sum(b.n) AS slope,
        -- squares about the ratio r = sum y / sum x over documents: sum (y - r x)^2 = Syy - 2 r Sxy + r^2 Sxx
        sum(b.slope * b.slope) AS slope_yy, sum(b.slope * b.n) AS slope_xy, sum(b.n * b.n) AS slope_xx,
        sum(b.fall) AS fall, sum(b.fall * b.fall) AS fall_yy, sum(b.fall * d.whole) AS fall_xy,
        sum(b.smallest_nats) / sum(b.n) AS smallest_nats, sum(b.largest_nats) / sum(b.n) AS largest_nats,
        sum(b.smallest_hits) / sum(b.n) AS smallest_rbp, sum(b.largest_hits) / sum(b.n) AS largest_rbp
    FROM by_document AS b
    JOIN documents_whole AS d USING (doc_id)
    GROUP BY b.token_id
),
words AS (
    SELECT token_id, text
    FROM vocab
    WHERE tokenizer_hash = (SELECT any_value(r.tokenizer_hash) FROM runs AS r WHERE r.run_id = $run_ids[1])
)
SELECT
    t.token_id, w.text, t.n_tokens::BIGINT AS n_tokens, t.n_documents, t.slope,
    sqrt(greatest(t.slope_yy - 2 * t.slope * t.slope_xy + t.slope * t.slope * t.slope_xx, 0)
        * t.n_documents / nullif(t.n_documents - 1, 0)) / t.n_tokens AS slope_stderr,
    t.smallest_nats, t.largest_nats, t.smallest_rbp, t.largest_rbp, t.fall AS fall_nats,
    t.fall / a.whole AS share,
    sqrt(greatest(t.fall_yy - 2 * (t.fall / a.whole) * t.fall_xy + (t.fall / a.whole) ** 2 * a.squares, 0)
        * a.n_documents / nullif(a.n_documents - 1, 0)) / a.whole AS share_stderr
FROM types AS t
CROSS JOIN text_whole AS a
LEFT JOIN words AS w USING (token_id)
ORDER BY t.fall DESC, t.token_id
