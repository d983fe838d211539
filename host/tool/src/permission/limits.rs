//! Limits that a plugin or a caller requests.

use serde::{Deserialize, Serialize};

use crate::Limits;

/// Order of limits. A missing limit means "no limit" and is above every number.
trait LimitOrder: Copy {
    fn is_above(self, other: Self) -> bool;
    fn shown(self) -> String;
}

macro_rules! number_bounds {
    ($($number:ty),*) => {$(
        impl LimitOrder for $number {
            fn is_above(self, other: Self) -> bool {
                self > other
            }
            fn shown(self) -> String {
                self.to_string()
            }
        }
    )*};
}

number_bounds!(u64, u32);

impl LimitOrder for Option<u64> {
    fn is_above(self, other: Self) -> bool {
        match (self, other) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(mine), Some(others)) => mine > others,
        }
    }
    fn shown(self) -> String {
        self.map_or_else(|| "none".to_owned(), |number| number.to_string())
    }
}

macro_rules! asked {
    ($($field:ident: $type:ty = $key:literal,)*) => {
        /// Requested values for some of the [`Limits`]: what a plugin needs or promises to keep to,
        /// or what the caller of one call sets. They can lower a limit and never raise it.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
        #[serde(expecting = "limits by name")]
        pub struct RequestedLimits {
            $(
                #[doc = concat!("`", $key, "`")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl RequestedLimits {
            /// Returns `offered`, lowered to the requested values.
            #[must_use]
            pub fn applied_to(&self, offered: &Limits) -> Limits {
                Limits {
                    $($field: match self.$field {
                        Some(asked) if LimitOrder::is_above(offered.$field, asked.into()) => asked.into(),
                        _ => offered.$field,
                    },)*
                }
            }

            /// Returns `others`, overridden by these values. For an operator who sets limits
            /// for a single plugin.
            #[must_use]
            pub fn over(&self, others: &Limits) -> Limits {
                Limits { $($field: self.$field.map_or(others.$field, |mine| mine.into()),)* }
            }

            /// Returns the requested limits that exceed the offer, as key, requested value and
            /// offered value.
            #[must_use]
            pub fn exceeding(&self, offered: &Limits) -> Vec<(&'static str, String, String)> {
                let mut exceeding = Vec::new();
                $(
                    if let Some(asked) = self.$field
                        && LimitOrder::is_above(asked.into(), offered.$field)
                    {
                        exceeding.push(($key, asked.to_string(), LimitOrder::shown(offered.$field)));
                    }
                )*
                exceeding
            }

            /// Returns the requested limits as keys and values.
            #[must_use]
            pub fn entries(&self) -> Vec<(&'static str, String)> {
                let mut entries = Vec::new();
                $(
                    if let Some(asked) = self.$field {
                        entries.push(($key, asked.to_string()));
                    }
                )*
                entries
            }
        }
    };
}

asked! {
    memory_bytes_max: u64 = "memory-bytes-max",
    wall_ms_max: u64 = "wall-ms-max",
    cpu_ms_max: u64 = "cpu-ms-max",
    fuel_max: u64 = "fuel-max",
    output_bytes_max: u64 = "output-bytes-max",
    hostcall_bytes_max: u64 = "hostcall-bytes-max",
    handles_max: u32 = "handles-max",
    instances_max: u32 = "instances-max",
    log_bytes_max: u64 = "log-bytes-max",
    random_bytes_max: u64 = "random-bytes-max",
    http_requests_max: u32 = "http-requests-max",
    http_sent_bytes_max: u64 = "http-sent-bytes-max",
    http_received_bytes_max: u64 = "http-received-bytes-max",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_lowers_and_never_raises() {
        let offered = Limits::default();
        let asked = RequestedLimits {
            wall_ms_max: Some(10),
            memory_bytes_max: Some(u64::MAX),
            fuel_max: Some(5),
            ..RequestedLimits::default()
        };
        let expected = Limits { wall_ms_max: 10, fuel_max: Some(5), ..Limits::default() };
        assert_eq!(asked.applied_to(&offered), expected);
        assert_eq!(
            asked.exceeding(&offered),
            [("memory-bytes-max", u64::MAX.to_string(), "67108864".to_owned())]
        );
        // A budget below the requested one is reported as missing.
        let tight = Limits { fuel_max: Some(3), ..Limits::default() };
        assert_eq!(asked.applied_to(&tight).fuel_max, Some(3));
        assert_eq!(asked.exceeding(&tight).len(), 2);
    }

    #[test]
    fn every_limit_can_be_asked_for() {
        let limits = serde_json::to_value(Limits::default()).unwrap();
        for key in limits.as_object().unwrap().keys() {
            let one = serde_json::json!({ key.as_str(): 1 });
            let asked: RequestedLimits =
                serde_json::from_value(one).unwrap_or_else(|error| panic!("{key}: {error}"));
            assert_eq!(asked.entries(), [(key.as_str(), "1".to_owned())]);
        }
    }
}
