"""When each token is learned: sigmoids and power laws of many tokens at once, times from hits, their order."""
