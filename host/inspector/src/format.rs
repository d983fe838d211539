//! Durations, sizes and counts in words.

use cofferdam_record::UtcTime;

/// Formats microseconds with a unit.
pub(crate) fn time(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Formats a number of bytes with a unit.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{}.{} KiB", bytes >> 10, (bytes % 1024) * 10 / 1024),
        _ => format!("{}.{} MiB", bytes >> 20, ((bytes >> 10) % 1024) * 10 / 1024),
    }
}

/// Formats a number with its noun.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Formats a time as date and time of day in UTC.
pub(crate) fn date_time(at: UtcTime) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(time(999), "999 µs");
        assert_eq!(time(1200), "1.2 ms");
        assert_eq!(time(61_500_000), "61.5 s");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 20), "5.0 MiB");
        assert_eq!(counted(1, "call"), "1 call");
        assert_eq!(counted(2, "call"), "2 calls");
        assert_eq!(date_time(UtcTime::from_micros(0)), "1970-01-01 00:00:00");
    }
}
