"""When each token is learned: curves of many tokens at once, times from hits, and their order."""
