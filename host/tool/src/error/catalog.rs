//! Catalog of error types: one row per cause, in the order of the table in `docs/rules/results.md`.
//!
//! `docs/errors.md` is generated from it; a test compares the two.

macro_rules! catalog {
    ($($(#[doc = $cause:literal])+ $variant:ident = $name:literal, transient: $transient:literal, $help:literal;)*) => {
        /// Type of error that ended a call with neither a value nor a failure reported by the tool
        /// (`RES-7`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorType {
            $($(#[doc = $cause])+ $variant,)*
        }

        impl ErrorType {
            /// All rows of the catalog, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the stable name, as used by models and records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Returns the cause in plain words.
            #[must_use]
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$variant => concat!($($cause),+).trim_ascii()),* }
            }

            /// Returns the row of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|row| row.name() == name)
            }

            /// Returns advice for the operator or the plugin's author.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),* }
            }

            /// Returns whether the same call may succeed when repeated (`RES-9`).
            #[must_use]
            pub const fn is_transient(self) -> bool {
                match self { $(Self::$variant => $transient),* }
            }
        }
    };
}

catalog! {
    /// the guest executed unreachable (panics and aborts included)
    TrapUnreachable = "Trap.Unreachable", transient: false,
        "A bug in the plugin: a panic, a failed assertion or an abort. Its message is at the end \
         of standard error in the call record.";
    /// access outside linear memory
    TrapMemoryOutOfBounds = "Trap.MemoryOutOfBounds", transient: false,
        "A bug in the plugin: an invalid pointer. The call stack in the record shows where.";
    /// access outside a table
    TrapTableOutOfBounds = "Trap.TableOutOfBounds", transient: false,
        "A bug in the plugin: an invalid function pointer. The call stack in the record shows \
         where.";
    /// indirect call with another signature, or through a null entry
    TrapIndirectCallMismatch = "Trap.IndirectCallMismatch", transient: false,
        "A bug in the plugin: a function pointer that is null or cast to another type.";
    /// overflow in a trapping integer operation
    TrapIntegerOverflow = "Trap.IntegerOverflow", transient: false,
        "A bug in the plugin, most often the smallest integer divided by -1.";
    /// division or remainder by zero
    TrapIntegerDivideByZero = "Trap.IntegerDivideByZero", transient: false,
        "A bug in the plugin: an unchecked divisor.";
    /// conversion of a float that has no integer value
    TrapBadConversion = "Trap.BadConversion", transient: false,
        "A bug in the plugin: NaN, an infinity or an out-of-range number is converted to an \
         integer.";
    /// call stack exhausted
    TrapStackOverflow = "Trap.StackOverflow", transient: false,
        "The plugin recurses infinitely or too deeply; guest code has 1 MiB of stack.";
    /// misaligned atomic access
    TrapHeapMisaligned = "Trap.HeapMisaligned", transient: false,
        "A bug in the plugin: an atomic variable at a misaligned address.";
    /// a guest exception left the export
    TrapUncaughtException = "Trap.UncaughtException", transient: false,
        "Catch exceptions in the plugin and report them as failures.";
    /// every other trap
    TrapOther = "Trap.Other", transient: false,
        "The engine's message in the call record names the trap.";
    /// the wall-clock limit of the call passed
    Timeout = "Timeout", transient: true,
        "Raise `wall-ms-max` for the plugin, or ask for less in one call.";
    /// the CPU time or the instruction budget was used up
    CpuLimit = "CpuLimit", transient: false,
        "Raise `cpu-ms-max` or `fuel-max` for the plugin, or ask for less in one call.";
    /// the guest asked for more memory, table space or instances than allowed and did not survive
    /// the refusal
    MemoryLimit = "MemoryLimit", transient: false,
        "Raise `memory-bytes-max` for the plugin, or give it smaller input.";
    /// the result is larger than the limit
    OutputLimit = "OutputLimit", transient: false,
        "Ask for less in one call: use a filter, a page, or a file instead of a result; or raise \
         `output-bytes-max`.";
    /// the guest held more host resources than allowed
    HandleLimit = "HandleLimit", transient: false,
        "Close streams and files that the plugin no longer needs, or raise `handles-max`.";
    /// the result is not valid JSON, breaks the declared output schema, is nested deeper than 128
    /// levels, or violates the calling convention
    InvalidResult = "InvalidResult", transient: false,
        "A bug in the plugin: what it returned does not match what it declared. The record says \
         how.";
    /// the guest asked to exit, with any code
    GuestExit = "GuestExit", transient: false,
        "Return from the tool even if it fails; `exit` is for commands.";
    /// the guest was stopped because it used a capability it was not granted
    CapabilityDenied = "CapabilityDenied", transient: false,
        "The record names the capability. Grant it if the plugin should have it.";
    /// another call committed a change to a file this call changed
    Conflict = "Conflict", transient: true,
        "Retry the call: it then sees the other call's change. `retries` of the plugin does this \
         automatically.";
    /// the component cannot be loaded, verified, compiled or instantiated, or the plugin has too
    /// many calls under way
    PluginUnavailable = "PluginUnavailable", transient: true,
        "The record says why. `cofferdam inspect` loads the component without calling it.";
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
        assert!(ErrorType::ALL.iter().all(|t| !t.cause().is_empty() && t.help().ends_with('.')));
    }

    #[test]
    fn rows_are_in_the_order_of_the_contract() {
        let names: Vec<_> = ErrorType::ALL.iter().map(|t| t.name()).collect();
        // Traps come first, then limits, then other causes that end a call, then those that keep it
        // from starting.
        let contract = "Trap.Unreachable Trap.MemoryOutOfBounds Trap.TableOutOfBounds Trap.IndirectCallMismatch \
                        Trap.IntegerOverflow Trap.IntegerDivideByZero Trap.BadConversion \
                        Trap.StackOverflow \
                        Trap.HeapMisaligned Trap.UncaughtException Trap.Other Timeout CpuLimit \
                        MemoryLimit \
                        OutputLimit HandleLimit InvalidResult GuestExit CapabilityDenied Conflict \
                        PluginUnavailable";
        assert_eq!(names.join(" "), contract);
    }

    #[test]
    fn three_types_are_transient() {
        let transient: Vec<_> =
            ErrorType::ALL.iter().filter(|t| t.is_transient()).map(|t| t.name()).collect();
        assert_eq!(transient, ["Timeout", "Conflict", "PluginUnavailable"]);
    }
}
