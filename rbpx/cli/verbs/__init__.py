"""One file a verb that is no analysis: its help, what it does with a job, and what follows the last job."""
