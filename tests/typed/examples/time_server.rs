//! A component in the convention of wassette: an inline interface, `result<_, string>`, WASI 0.2
//! for the rest.

wit_bindgen::generate!({
    inline: "
        package local:time-server;
        world time-server {
            export time: interface {
                /// Get the current time.
                get-current-time: func() -> result<string, string>;
            }
            export list-directory: func(path: string) -> result<list<string>, string>;
        }
    ",
});

struct TimeServer;

impl exports::time::Guest for TimeServer {
    fn get_current_time() -> Result<String, String> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map(|since| format!("{} s", since.as_secs())).map_err(|error| error.to_string())
    }
}

impl Guest for TimeServer {
    fn list_directory(path: String) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

export!(TimeServer);
