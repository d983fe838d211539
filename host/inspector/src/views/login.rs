//! Page of a browser that has not logged in.

use maud::{Markup, html};

use super::layout;
use crate::assets::LOGIN;

/// Returns the page. Its script logs in with the key in the fragment of the address.
pub(crate) fn page() -> Markup {
    let body = html! {
        main id="main" {
            h1 { "Inspector" }
            p id="login-state" role="status" {
                "To log in, open the address that the command printed. Each address works once, \
                 within five minutes."
            }
            noscript { p { "Logging in needs JavaScript, from this server only." } }
        }
    };
    layout::document("Log in", &[&LOGIN], body)
}
