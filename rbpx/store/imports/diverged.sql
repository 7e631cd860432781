-- Ends of runs whose loss is far above that of a row of their run, or of another run's end, that had no more parameters
-- and training. `given` has a row for each loss: place, run, its group, S, D, C, step, loss.
-- returns: run, high (place of its end), low (place of the other row), in order of places
WITH known AS (
    SELECT of_group, count(D) > 0 AS has_D, count(C) > 0 AS has_C, count(step) > 0 AS has_step
    FROM given
    GROUP BY of_group
),
placed AS (
    SELECT
        place, run, of_group, S, loss,
        CASE WHEN has_D THEN D WHEN has_C THEN C / (6 * S) WHEN has_step THEN step ELSE 0 END AS progress
    FROM given JOIN known USING (of_group)
),
last_places AS (
    SELECT max_by(place, (progress IS NULL, coalesce(progress, 0), place)) AS place FROM placed GROUP BY run
),
ends AS (FROM placed SEMI JOIN last_places USING (place)),
pairs AS (
    SELECT one.run, one.place AS high, one.loss AS loss_high, other.place AS low, other.loss, true AS is_own
    FROM ends AS one JOIN placed AS other USING (run)
    UNION ALL
    SELECT one.run, one.place, one.loss, other.place, other.loss, false
    FROM ends AS one JOIN ends AS other USING (of_group)
    WHERE other.S <= one.S AND other.progress <= one.progress
)
SELECT run, high, arg_min(low, (loss, is_own, low)) AS low
FROM pairs
GROUP BY run, high, loss_high
-- of published tables only sweeps of the learning rate have such runs; half a nat or bit, for losses near 0
HAVING loss_high > greatest(1.5 * min(loss), min(loss) + 0.5)
ORDER BY high
