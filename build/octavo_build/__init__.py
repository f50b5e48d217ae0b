"""The compiler: a pack's source folder in, an immutable artifact out."""
