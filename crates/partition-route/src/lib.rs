//! Lower bounds, placement, phase partitioning, routing and channel numbering.
