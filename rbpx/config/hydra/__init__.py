"""How a command line is read: Hydra, behind one adapter."""
