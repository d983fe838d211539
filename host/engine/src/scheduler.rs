//! Scheduling: decides when a call runs, on which thread and for how long.
//!
//! A call asks [`admission`] for a permit, which are distributed fairly between plugins. It starts
//! on its caller's thread; if it computes for more than a moment, as its [`cpu_meter`] shows, it
//! continues in the [`cpu_pool`]. The [`epoch`] thread interrupts running guests so that limits are
//! checked: CPU time by the meter, wall-clock time by the [`deadline`]. An idle engine returns
//! memory to the system ([`trim`]).

pub(crate) mod admission;
pub(crate) mod cpu_meter;
pub(crate) mod cpu_pool;
pub(crate) mod deadline;
pub(crate) mod epoch;
mod trim;
