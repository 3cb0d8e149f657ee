"""Multi-hop retrieval: links between passages and the search for paths."""
