//! A component in the convention of wassette that imports `wasi:http`.

use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

wit_bindgen::generate!({
    inline: "
        package component:fetch;
        world fetch {
            /// Fetch data from a URL and return it as text.
            export fetch: func(url: string) -> result<string, string>;
            export describe: func() -> string;
        }
    ",
});

struct Fetch;

impl Guest for Fetch {
    fn fetch(url: String) -> Result<String, String> {
        let request = OutgoingRequest::new(Fields::new());
        request.set_scheme(Some(&Scheme::Https)).map_err(|()| "the scheme is refused")?;
        request.set_authority(Some(&url)).map_err(|()| "the authority is refused")?;
        request.set_path_with_query(Some("/")).map_err(|()| "the path is refused")?;
        let response =
            outgoing_handler::handle(request, None).map_err(|error| error.to_string())?;
        response.subscribe().block();
        Ok("fetched".to_owned())
    }

    fn describe() -> String {
        "fetches".to_owned()
    }
}

export!(Fetch);
