"""`octavo doctor`: what is wrong with this machine and this configuration, before a client finds out."""
