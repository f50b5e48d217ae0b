"""HTTP: the routes, their errors, the guard before them, the socket."""
