//! Meshes, graphs, matrices and patterns turned into connection sets.
