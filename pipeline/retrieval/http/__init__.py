"""Search by a server of the owner's, over HTTP."""
