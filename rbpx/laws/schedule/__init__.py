"""Loss of a run under any schedule of its learning rate, and where a run that is underway ends."""
