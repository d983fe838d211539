#pragma once

#include <optional>
#include <string>
#include <string_view>

// Decodes base64, with or without padding, also of a `data:` URI. Returns nothing if it is invalid.
std::optional<std::string> from_base64(std::string_view text);
