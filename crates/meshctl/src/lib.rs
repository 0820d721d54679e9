//! The command line of the mesh.
