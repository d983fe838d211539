//! `cofferdam:plugin/secrets`: values of secrets that a plugin may read.

use cofferdam_tool::Permission;

use super::{CallState, Capability};
use crate::guest::cofferdam::plugin::secrets;

impl secrets::Host for CallState {
    fn get(&mut self, name: String) -> Result<String, secrets::Error> {
        let grants = self.grants();
        let value = grants.secrets.get(&name).filter(|_| grants.readable_secrets.contains(&name));
        if let Some(value) = value {
            if let Some(recorder) = &self.recorder {
                recorder.add_gap("the guest read a secret, which a replay replaces");
            }
            return Ok(value.expose().to_owned());
        }
        // An invalid name does not need an entry in the record.
        if let Ok(permission) = format!("secret:{name}").parse::<Permission>() {
            self.refuse(Capability::Secrets, &permission.to_string());
        }
        Err(secrets::Error::AccessDenied)
    }
}
