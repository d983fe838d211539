//! The table of error types: one row per cause, in the order of the contract.

macro_rules! catalog {
    ($($(#[doc = $cause:literal])+ $variant:ident = $name:literal, transient: $transient:literal;)*) => {
        /// Why a call ended without a value and without a failure of the tool's own (`RES-7`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorType {
            $($(#[doc = $cause])+ $variant,)*
        }

        impl ErrorType {
            /// Every row of the table, in its order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable name, as models and records see it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The cause in plain words.
            #[must_use]
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$variant => concat!($($cause),+).trim_ascii()),* }
            }

            /// Whether the same call may succeed when it is made again (`RES-9`).
            #[must_use]
            pub const fn is_transient(self) -> bool {
                match self { $(Self::$variant => $transient),* }
            }
        }
    };
}

catalog! {
    /// the guest executed unreachable (panics and aborts included)
    TrapUnreachable = "Trap.Unreachable", transient: false;
    /// access outside linear memory
    TrapMemoryOutOfBounds = "Trap.MemoryOutOfBounds", transient: false;
    /// access outside a table
    TrapTableOutOfBounds = "Trap.TableOutOfBounds", transient: false;
    /// indirect call with another signature, or through a null entry
    TrapIndirectCallMismatch = "Trap.IndirectCallMismatch", transient: false;
    /// overflow in a trapping integer operation
    TrapIntegerOverflow = "Trap.IntegerOverflow", transient: false;
    /// division or remainder by zero
    TrapIntegerDivideByZero = "Trap.IntegerDivideByZero", transient: false;
    /// conversion of a float that has no integer value
    TrapBadConversion = "Trap.BadConversion", transient: false;
    /// call stack exhausted
    TrapStackOverflow = "Trap.StackOverflow", transient: false;
    /// misaligned atomic access
    TrapHeapMisaligned = "Trap.HeapMisaligned", transient: false;
    /// a guest exception left the export
    TrapUncaughtException = "Trap.UncaughtException", transient: false;
    /// every other trap
    TrapOther = "Trap.Other", transient: false;
    /// the wall-clock limit of the call passed
    Timeout = "Timeout", transient: true;
    /// the instruction budget was used up
    CpuLimit = "CpuLimit", transient: false;
    /// the guest asked for more memory, table space or instances than allowed and did not survive the refusal
    MemoryLimit = "MemoryLimit", transient: false;
    /// the result is larger than the limit
    OutputLimit = "OutputLimit", transient: false;
    /// the guest held more host resources than allowed
    HandleLimit = "HandleLimit", transient: false;
    /// the result is not valid JSON, breaks the declared output schema, is nested deeper than 128 levels, or
    /// violates the calling convention
    InvalidResult = "InvalidResult", transient: false;
    /// the guest asked to exit, with any code
    GuestExit = "GuestExit", transient: false;
    /// the guest was stopped because it used a capability it was not granted
    CapabilityDenied = "CapabilityDenied", transient: false;
    /// another call committed a change to a file this call changed
    Conflict = "Conflict", transient: true;
    /// the component cannot be loaded, verified, compiled or instantiated
    PluginUnavailable = "PluginUnavailable", transient: true;
}

impl std::fmt::Display for ErrorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_causes_are_stated() {
        let names: BTreeSet<_> = ErrorType::ALL.iter().map(|t| t.name()).collect();
        assert_eq!(names.len(), ErrorType::ALL.len());
        assert!(ErrorType::ALL.iter().all(|t| !t.cause().is_empty()));
    }

    #[test]
    fn three_types_are_transient() {
        let transient: Vec<_> =
            ErrorType::ALL.iter().filter(|t| t.is_transient()).map(|t| t.name()).collect();
        assert_eq!(transient, ["Timeout", "Conflict", "PluginUnavailable"]);
    }
}
