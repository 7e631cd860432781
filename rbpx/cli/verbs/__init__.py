"""One file per verb that is not a question: its help, what it does with a job, and what follows the last job."""
