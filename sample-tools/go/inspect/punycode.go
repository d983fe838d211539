package main

import (
	"errors"
	"math"
	"strings"
)

// The parameters of RFC 3492, section 5.
const (
	base        = 36
	tMin        = 1
	tMax        = 26
	skew        = 38
	damp        = 700
	initialBias = 72
	initialN    = 128
	// Maximum bytes of a DNS label.
	labelBytesMax = 63
)

var errPunycode = errors.New("not punycode")

// unicodeHost decodes the labels that begin with `xn--`. Labels that cannot be decoded stay.
func unicodeHost(host string) string {
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if encoded, is := strings.CutPrefix(label, "xn--"); is {
			if decoded, err := decodePunycode(encoded); err == nil {
				labels[i] = decoded
			}
		}
	}
	return strings.Join(labels, ".")
}

// decodePunycode implements section 6.2 of RFC 3492.
func decodePunycode(text string) (string, error) {
	if len(text) > labelBytesMax {
		return "", errPunycode
	}
	output := []rune{}
	rest := text
	if at := strings.LastIndexByte(text, '-'); at >= 0 {
		output, rest = []rune(text[:at]), text[at+1:]
	}
	n, i, bias := initialN, 0, initialBias
	for len(rest) > 0 {
		before, weight := i, 1
		for k := base; ; k += base {
			if rest == "" {
				return "", errPunycode
			}
			digit := digitOf(rest[0])
			rest = rest[1:]
			if digit < 0 || digit > (math.MaxInt32-i)/weight {
				return "", errPunycode
			}
			i += digit * weight
			t := min(max(k-bias, tMin), tMax)
			if digit < t {
				break
			}
			if weight > math.MaxInt32/(base-t) {
				return "", errPunycode
			}
			weight *= base - t
		}
		length := len(output) + 1
		bias = adapted(i-before, length, before == 0)
		n += i / length
		i %= length
		if n > 0x10FFFF {
			return "", errPunycode
		}
		output = append(output[:i], append([]rune{rune(n)}, output[i:]...)...)
		i++
	}
	return string(output), nil
}

func adapted(delta, points int, isFirst bool) int {
	if isFirst {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-tMin)*tMax/2; k += base {
		delta /= base - tMin
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}

func digitOf(letter byte) int {
	switch {
	case letter >= 'a' && letter <= 'z':
		return int(letter - 'a')
	case letter >= 'A' && letter <= 'Z':
		return int(letter - 'A')
	case letter >= '0' && letter <= '9':
		return int(letter-'0') + 26
	default:
		return -1
	}
}
