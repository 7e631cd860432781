"""Files: reading users' tables, writing atomically, digests."""
