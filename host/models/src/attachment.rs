//! Files in messages: bytes, or an address that the provider reads.

use cofferdam_agent::{ChatError, ChatErrorKind, Data, Message, MessageContent, Role, UriContent};
use serde_json::Value;

use super::Provider;
use super::prepared::is_reply;

/// A file in a message.
#[derive(Clone, Copy)]
pub(super) enum Attachment<'m> {
    Data(&'m Data),
    Uri(&'m UriContent),
}

/// Writes a file as a part of a message; `None` if the API cannot show it.
pub(super) type WriteAttachment = fn(Attachment<'_>) -> Option<Value>;

impl<'m> Attachment<'m> {
    /// Returns the file in a content, if it is one.
    pub(super) fn of(content: &'m MessageContent) -> Option<Self> {
        match content {
            MessageContent::Data(data) => Some(Self::Data(data)),
            MessageContent::Uri(uri) => Some(Self::Uri(uri)),
            _ => None,
        }
    }

    pub(super) fn media_type(self) -> &'m str {
        match self {
            Self::Data(data) => &data.media_type,
            Self::Uri(uri) => &uri.media_type,
        }
    }

    pub(super) fn is_image(self) -> bool {
        self.media_type().starts_with("image/")
    }

    /// Returns the address, which contains the bytes if there is no other.
    pub(super) fn url(self) -> String {
        match self {
            Self::Data(data) => format!("data:{};base64,{}", data.media_type, data.data),
            Self::Uri(uri) => uri.uri.clone(),
        }
    }

    /// Returns the string that a model sees instead of a file that its provider cannot show.
    pub(super) fn not_shown(self) -> String {
        match self {
            Self::Data(data) => {
                format!("[data of the type {} that cannot be shown here]", data.media_type)
            }
            Self::Uri(uri) => {
                let (media_type, uri) = (&uri.media_type, &uri.uri);
                format!("[a file of the type {media_type} at {uri} that cannot be shown here]")
            }
        }
    }
}

/// Checks that an API can show the files of the user's newest messages. Earlier ones may have been
/// for another model, and are described in words.
pub(super) fn check(
    provider: Provider,
    write: WriteAttachment,
    messages: &[std::sync::Arc<Message>],
) -> Result<(), ChatError> {
    let newest = messages.iter().rev().take_while(|message| !is_reply(message));
    let contents =
        newest.filter(|message| message.role == Role::User).flat_map(|message| &message.contents);
    let unfit = contents.filter_map(Attachment::of).find(|file| write(*file).is_none());
    let Some(file) = unfit else { return Ok(()) };
    let what = match file {
        Attachment::Data(_) => "data",
        Attachment::Uri(_) => "a link to a file",
    };
    let message = format!(
        "the API of the provider `{provider}` cannot show {what} of the type `{}`: remove it from \
         the message",
        file.media_type()
    );
    Err(ChatError::new(ChatErrorKind::Configuration, message))
}
