"""Hidden states and a head in, exact ranks out; knows no framework but torch."""
