package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"cofferdam"
)

const (
	// A chain has a few kilobytes; a bundle of all authorities has 200.
	certificateBytesMax = 1 << 20
	// More certificates are a bundle, for which a report is not useful.
	certificatesMax = 50
	// Browsers reject longer validity since 2020.
	leafDaysMax = 398
	rsaBitsMin  = 2048
)

// CertificatesInput contains the arguments of inspect_certificates: text or file.
type CertificatesInput struct {
	Text *string `json:"text" description:"The certificates: PEM, or one in DER as base64."`
	File *string `json:"file" description:"In place of text: a file in PEM or DER, for example /data/chain.pem."`
	At   *string `json:"at" description:"The date to check for, for example 2026-03-01 or 2026-03-01T12:00:00Z; today if it is left out."`
	Host *string `json:"host" description:"The host that the first certificate should be for."`
}

// CertificatesReport is the result of inspect_certificates.
type CertificatesReport struct {
	At           string        `json:"at"`
	Certificates []Certificate `json:"certificates"`
	// Problems contains problems of the chain: order, signatures.
	Problems []string `json:"problems"`
}

// Certificate describes one certificate.
type Certificate struct {
	Subject   string   `json:"subject"`
	Issuer    string   `json:"issuer"`
	Names     []string `json:"names"`
	Serial    string   `json:"serial"`
	NotBefore string   `json:"not_before"`
	NotAfter  string   `json:"not_after"`
	DaysLeft  int      `json:"days_left"`
	Key       string   `json:"key"`
	Signature string   `json:"signature"`
	IsCA      bool     `json:"is_ca"`
	SHA256    string   `json:"sha256"`
	Problems  []string `json:"problems"`
}

func inspectCertificates(_ *cofferdam.Call, in CertificatesInput) (*CertificatesReport, error) {
	at := time.Now().UTC()
	if in.At != nil {
		moment, err := parseMoment(*in.At, time.UTC, "")
		if err != nil {
			return nil, err
		}
		at = moment.Time
	}
	content, err := certificateText(in)
	if err != nil {
		return nil, err
	}
	chain, err := parseCertificates(content)
	if err != nil {
		return nil, err
	}
	report := &CertificatesReport{At: at.UTC().Format(time.RFC3339), Problems: chainProblems(chain)}
	for i, certificate := range chain {
		report.Certificates = append(report.Certificates, describe(certificate, at, i == 0))
	}
	if in.Host != nil {
		if err := chain[0].VerifyHostname(*in.Host); err != nil {
			report.Problems = append(report.Problems, fmt.Sprintf("the first certificate is not for the host `%s`", *in.Host))
		}
	}
	return report, nil
}

func certificateText(in CertificatesInput) ([]byte, error) {
	switch {
	case (in.Text == nil) == (in.File == nil):
		return nil, cofferdam.Failf("one of `text` and `file` is needed, and not both").
			Suggest("pass the PEM text as `text`, or the path of a file as `file`")
	case in.Text != nil:
		if len(*in.Text) > certificateBytesMax {
			return nil, tooLong()
		}
		return []byte(*in.Text), nil
	}
	file, err := os.Open(*in.File)
	if err != nil {
		return nil, cannotRead(*in.File, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, certificateBytesMax+1))
	switch {
	case err != nil:
		return nil, cannotRead(*in.File, err)
	case len(content) > certificateBytesMax:
		return nil, tooLong()
	default:
		return content, nil
	}
}

func tooLong() error {
	return cofferdam.Failf("the certificates have more than %d bytes", certificateBytesMax).
		Suggest("pass the chain of one server")
}

func cannotRead(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cofferdam.Failf("there is no file `%s`", path).Suggest("check the path; it begins with the name of a mount, as in /data/chain.pem")
	}
	if errors.Is(err, syscall.EBADF) {
		return cofferdam.Failf("`%s` is in no mount that was granted", path).Suggest("pass a path that begins with the name of a mount, as in /data/chain.pem")
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return cofferdam.Failf("the file `%s` cannot be read: %v", path, err)
}

func parseCertificates(content []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	others := map[string]bool{}
	for rest := content; len(chain) <= certificatesMax; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			others[block.Type] = true
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, cofferdam.Failf("certificate %d cannot be read: %v", len(chain)+1, err)
		}
		chain = append(chain, certificate)
	}
	switch {
	case len(chain) > certificatesMax:
		return nil, cofferdam.Failf("there are more than %d certificates", certificatesMax).Suggest("pass the chain of one server")
	case len(chain) > 0:
		return chain, nil
	case len(others) > 0:
		return nil, cofferdam.Failf("there is no certificate, only %s", joined(others)).Suggest("pass the block that begins with `BEGIN CERTIFICATE`")
	}
	return parseDER(content)
}

func parseDER(content []byte) ([]*x509.Certificate, error) {
	der := content
	if decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(content)), "")); err == nil {
		der = decoded
	}
	chain, err := x509.ParseCertificates(der)
	if err != nil || len(chain) == 0 || len(chain) > certificatesMax {
		return nil, cofferdam.Failf("this is not a certificate, neither PEM nor DER").
			Suggest("pass text that has lines `-----BEGIN CERTIFICATE-----` and `-----END CERTIFICATE-----`")
	}
	return chain, nil
}

func describe(it *x509.Certificate, at time.Time, isFirst bool) Certificate {
	sum := sha256.Sum256(it.Raw)
	names := append([]string{}, it.DNSNames...)
	for _, address := range it.IPAddresses {
		names = append(names, address.String())
	}
	names = append(names, it.EmailAddresses...)
	for _, uri := range it.URIs {
		names = append(names, uri.String())
	}
	return Certificate{
		Subject:   it.Subject.String(),
		Issuer:    it.Issuer.String(),
		Names:     names,
		Serial:    hex.EncodeToString(it.SerialNumber.Bytes()),
		NotBefore: it.NotBefore.UTC().Format(time.RFC3339),
		NotAfter:  it.NotAfter.UTC().Format(time.RFC3339),
		DaysLeft:  int(it.NotAfter.Sub(at) / (24 * time.Hour)),
		Key:       keyOf(it),
		Signature: it.SignatureAlgorithm.String(),
		IsCA:      it.IsCA,
		SHA256:    hex.EncodeToString(sum[:]),
		Problems:  problemsOf(it, at, isFirst),
	}
}

func keyOf(it *x509.Certificate) string {
	switch key := it.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA, %d bits", key.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA, " + key.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	default:
		return it.PublicKeyAlgorithm.String()
	}
}

func problemsOf(it *x509.Certificate, at time.Time, isFirst bool) []string {
	problems := []string{}
	add := func(is bool, format string, arguments ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, arguments...))
		}
	}
	add(at.Before(it.NotBefore), "not valid before %s", it.NotBefore.UTC().Format(time.DateOnly))
	add(at.After(it.NotAfter), "expired on %s", it.NotAfter.UTC().Format(time.DateOnly))
	if key, is := it.PublicKey.(*rsa.PublicKey); is {
		add(key.N.BitLen() < rsaBitsMin, "an RSA key of %d bits is too short; %d are the least", key.N.BitLen(), rsaBitsMin)
	}
	switch it.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		add(true, "%s is broken", it.SignatureAlgorithm)
	}
	if isFirst && !it.IsCA {
		days := int(it.NotAfter.Sub(it.NotBefore) / (24 * time.Hour))
		add(days > leafDaysMax, "valid for %d days; browsers take at most %d", days, leafDaysMax)
		add(len(it.DNSNames)+len(it.IPAddresses)+len(it.EmailAddresses)+len(it.URIs) == 0,
			"has no alternative names; clients ignore the common name")
		add(isSelfSigned(it), "signed by itself")
	}
	return problems
}

func isSelfSigned(it *x509.Certificate) bool {
	return bytes.Equal(it.RawIssuer, it.RawSubject)
}

// chainProblems checks that each certificate is signed by the next one.
func chainProblems(chain []*x509.Certificate) []string {
	problems := []string{}
	for i := 1; i < len(chain); i++ {
		if err := chain[i-1].CheckSignatureFrom(chain[i]); err != nil {
			problem := fmt.Sprintf("certificate %d is not signed by certificate %d", i, i+1)
			if !bytes.Equal(chain[i-1].RawIssuer, chain[i].RawSubject) {
				problem += fmt.Sprintf(": its issuer is `%s`", chain[i-1].Issuer)
			} else if !chain[i].IsCA {
				problem += ": that one may not sign others"
			}
			problems = append(problems, problem)
		}
	}
	last := chain[len(chain)-1]
	if len(chain) == 1 && !last.IsCA && !isSelfSigned(last) {
		problems = append(problems, fmt.Sprintf("the certificate of the issuer `%s` is missing", last.Issuer))
	}
	return problems
}

func joined(words map[string]bool) string {
	all := make([]string, 0, len(words))
	for word := range words {
		all = append(all, "`"+word+"`")
	}
	return strings.Join(sorted(all), ", ")
}
