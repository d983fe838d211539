package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cofferdam"
)

// Longer than any browser accepts.
const urlBytesMax = 65_536

// URLInput contains the arguments of inspect_url.
type URLInput struct {
	URL string `json:"url" description:"The address, with its scheme, for example https://example.com/a?b=c."`
}

// URLReport is the result of inspect_url.
type URLReport struct {
	URL    string `json:"url"`
	Scheme string `json:"scheme"`
	User   string `json:"user,omitempty"`
	Host   string `json:"host,omitempty"`
	// HostUnicode is the host as browsers show it to users.
	HostUnicode string      `json:"host_unicode,omitempty"`
	Port        int         `json:"port,omitempty"`
	Path        []string    `json:"path"`
	Query       []Parameter `json:"query"`
	Fragment    string      `json:"fragment,omitempty"`
	Warnings    []string    `json:"warnings"`
}

// Parameter is a decoded parameter of a query.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

var defaultPorts = map[string]int{"http": 80, "https": 443, "ftp": 21, "ws": 80, "wss": 443, "ssh": 22}

func inspectURL(_ *cofferdam.Call, in URLInput) (*URLReport, error) {
	text := strings.TrimSpace(in.URL)
	if len(text) > urlBytesMax {
		return nil, cofferdam.Failf("the URL has more than %d bytes", urlBytesMax)
	}
	cleaned, warnings := withoutHidden(text)
	parsed, err := url.Parse(cleaned)
	if err != nil {
		return nil, cofferdam.Failf("this is not a URL: %v", cause(err)).Suggest("pass a whole URL, as in https://example.com/path")
	}
	if parsed.Scheme == "" {
		return nil, cofferdam.Failf("the URL has no scheme").Suggest("put `https://` before it, if that is meant")
	}
	report := &URLReport{
		Scheme: parsed.Scheme, Fragment: parsed.Fragment, Path: segments(parsed), Query: parameters(parsed.RawQuery), Warnings: warnings,
	}
	report.host(parsed)
	report.secrets(parsed)
	report.URL = parsed.Redacted()
	return report, nil
}

func (report *URLReport) warn(format string, arguments ...any) {
	report.Warnings = append(report.Warnings, fmt.Sprintf(format, arguments...))
}

func (report *URLReport) host(parsed *url.URL) {
	switch report.Scheme {
	case "javascript", "data", "vbscript", "blob":
		report.warn("`%s:` runs or holds content by itself and leads nowhere", report.Scheme)
	case "http", "ftp", "ws":
		report.warn("`%s` is not encrypted", report.Scheme)
	}
	report.Host = strings.ToLower(parsed.Hostname())
	if port, err := strconv.Atoi(parsed.Port()); err == nil {
		report.Port = port
		if usual, is := defaultPorts[report.Scheme]; is && usual != port {
			report.warn("port %d is not the usual one of %s", port, report.Scheme)
		}
	} else {
		report.Port = defaultPorts[report.Scheme]
	}
	if report.Host == "" {
		return
	}
	report.HostUnicode = unicodeHost(report.Host)
	report.address()
	report.letters()
	if strings.HasSuffix(report.Host, ".") {
		report.warn("the host ends with a dot")
	}
}

// address detects IP addresses, and numbers that old functions read as IP addresses.
func (report *URLReport) address() {
	if address, err := netip.ParseAddr(report.Host); err == nil {
		report.warn("the host is an IP address%s", reach(address.Unmap()))
		return
	}
	if address, is := disguised(report.Host); is {
		report.warn("the host is the IP address %s in disguise%s", address, reach(address))
	}
}

func reach(address netip.Addr) string {
	switch {
	case address.IsLoopback() || address.IsUnspecified():
		return ", of this computer"
	case address.IsPrivate(), address.IsLinkLocalUnicast():
		return ", of a local network"
	default:
		return ""
	}
}

// disguised reads one to four numbers, decimal, octal or hexadecimal, the last of which fills the
// remaining bytes, like inet_aton.
func disguised(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var whole uint64
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 0, 32)
		left := 8 * (4 - i)
		switch {
		case err != nil || strings.ContainsAny(part, "_"):
			return netip.Addr{}, false
		case i < len(parts)-1 && number > 255, i == len(parts)-1 && number >= 1<<left:
			return netip.Addr{}, false
		case i < len(parts)-1:
			whole |= number << (left - 8)
		default:
			whole |= number
		}
	}
	bytes := net.IPv4(byte(whole>>24), byte(whole>>16), byte(whole>>8), byte(whole)).To4()
	return netip.AddrFrom4([4]byte(bytes)), true
}

// letters detects labels that mix scripts, and reports the text that punycode hides.
func (report *URLReport) letters() {
	if report.HostUnicode != report.Host {
		report.warn("people may be shown `%s` for `%s`", report.HostUnicode, report.Host)
	}
	for _, label := range strings.Split(report.HostUnicode, ".") {
		if scripts := scriptsOf(label); len(scripts) > 1 {
			report.warn("the label `%s` mixes letters of %s", label, strings.Join(scripts, " and "))
		} else if len(scripts) == 1 && scripts[0] != "Latin" && looksLatin(label) {
			report.warn("the label `%s` looks Latin and has letters of %s", label, scripts[0])
		}
	}
}

// Scripts that are written together count as one.
var together = map[string]string{"Hiragana": "Japanese", "Katakana": "Japanese", "Han": "Japanese", "Hangul": "Korean", "Bopomofo": "Chinese"}

func scriptsOf(label string) []string {
	var scripts []string
	for _, letter := range label {
		for name, table := range unicode.Scripts {
			if name == "Common" || name == "Inherited" || !unicode.Is(table, letter) {
				continue
			}
			if other, is := together[name]; is {
				name = other
			}
			if !slices.Contains(scripts, name) {
				scripts = append(scripts, name)
			}
		}
	}
	return sorted(scripts)
}

// Cyrillic and Greek letters that look like Latin ones in most fonts.
const lookAlike = "аеорсухіјѕԁһԛԝоνοαρτυικ"

func looksLatin(label string) bool {
	for _, letter := range label {
		if letter > unicode.MaxASCII && !strings.ContainsRune(lookAlike, letter) {
			return false
		}
	}
	return true
}

func (report *URLReport) secrets(parsed *url.URL) {
	if parsed.User == nil {
		return
	}
	report.User = parsed.User.Username()
	report.warn("the part before `@` is a user name, not the host; the host is `%s`", report.Host)
	if _, is := parsed.User.Password(); is {
		report.warn("there is a password in the URL")
	}
}

// withoutHidden removes invisible characters, as browsers do with some of them, and reports them.
func withoutHidden(text string) (string, []string) {
	hidden := map[string]bool{}
	cleaned := strings.Map(func(letter rune) rune {
		if unicode.IsControl(letter) || unicode.Is(unicode.Cf, letter) {
			hidden[fmt.Sprintf("U+%04X", letter)] = true
			return -1
		}
		return letter
	}, text)
	warnings := []string{}
	if len(hidden) > 0 {
		warnings = append(warnings, "there are characters that cannot be seen: "+strings.ReplaceAll(joined(hidden), "`", ""))
	}
	if head, _, _ := strings.Cut(cleaned, "?"); strings.Contains(head, `\`) {
		warnings = append(warnings, "there is a backslash, which some programs take for `/`")
		cleaned = strings.ReplaceAll(head, `\`, "/") + strings.TrimPrefix(cleaned, head)
	}
	return cleaned, warnings
}

// segments decodes the segments separately, because `%2F` separates nothing.
func segments(parsed *url.URL) []string {
	path := parsed.EscapedPath()
	if parsed.Opaque != "" {
		path = parsed.Opaque
	}
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return []string{}
	}
	all := strings.Split(path, "/")
	for i, segment := range all {
		if plain, err := url.PathUnescape(segment); err == nil {
			all[i] = plain
		}
	}
	return all
}

// parameters keeps the order, which url.Values does not.
func parameters(query string) []Parameter {
	all := []Parameter{}
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		all = append(all, Parameter{decoded(name), decoded(value)})
	}
	return all
}

func decoded(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// cause returns the error without the URL, which the caller already knows.
func cause(err error) error {
	if wrong, is := err.(*url.Error); is {
		return wrong.Err
	}
	return err
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}
