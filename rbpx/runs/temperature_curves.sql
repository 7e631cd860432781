-- The losses of the documents of one run at each inverse temperature, with two derivatives; no rows where they were not
-- measured.
-- $run_id VARCHAR.
-- returns: doc_id, beta, n_tokens, sum_loss_nats, sum_slope_nats, sum_curvature_nats; by document, then beta
SELECT doc_id, beta, n_tokens, sum_loss_nats, sum_slope_nats, sum_curvature_nats
FROM temperatures
WHERE run_id = $run_id
ORDER BY doc_id, beta
