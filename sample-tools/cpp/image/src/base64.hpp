#pragma once

#include <optional>
#include <string>
#include <string_view>

// Decodes base64, with or without padding, also that of a `data:` URI; nothing if it is none.
std::optional<std::string> from_base64(std::string_view text);
