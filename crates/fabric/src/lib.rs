//! The emulated iWarp: links, channels, agents, barrier and context switch.
