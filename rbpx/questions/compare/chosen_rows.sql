-- Which of the compared stretches meet a condition.
-- returns: row (its place among them)
SELECT "row"
FROM given
ORDER BY "row"
