"""Stands in for the module `ssl`, which CPython for WebAssembly lacks: the host does the TLS.

It verifies certificates against its own authorities, whatever a context says. Only sockets of
requests can be wrapped.
"""

from __future__ import annotations

import enum
import os
from typing import Any, NamedTuple

from cofferdam._http._errors import SSLCertVerificationError, SSLError
from cofferdam._http._socket import HttpSocket

CertificateError = SSLCertVerificationError

OPENSSL_VERSION = "OpenSSL 3.0.0 (replaced by the TLS of the host)"
OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
HAS_SNI = HAS_ALPN = HAS_ECDH = HAS_NEVER_CHECK_COMMON_NAME = HAS_TLSv1_2 = HAS_TLSv1_3 = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_PSK = False
CHANNEL_BINDING_TYPES: list[str] = []


class SSLZeroReturnError(SSLError):
    """The connection was closed."""


class SSLWantReadError(SSLError):
    """More data has to arrive first."""


class SSLWantWriteError(SSLError):
    """More data has to be sent first."""


class SSLSyscallError(SSLError):
    """A system call failed."""


class SSLEOFError(SSLError):
    """The connection ended early."""


class _SSLMethod(enum.IntEnum):
    PROTOCOL_TLS = PROTOCOL_SSLv23 = 2
    PROTOCOL_TLSv1 = 3
    PROTOCOL_TLSv1_1 = 4
    PROTOCOL_TLSv1_2 = 5
    PROTOCOL_TLS_CLIENT = 16
    PROTOCOL_TLS_SERVER = 17


class TLSVersion(enum.IntEnum):
    """Versions of TLS."""

    MINIMUM_SUPPORTED = -2
    SSLv3 = 768
    TLSv1 = 769
    TLSv1_1 = 770
    TLSv1_2 = 771
    TLSv1_3 = 772
    MAXIMUM_SUPPORTED = -1


class VerifyMode(enum.IntEnum):
    """Modes of the verification of certificates."""

    CERT_NONE = 0
    CERT_OPTIONAL = 1
    CERT_REQUIRED = 2


class VerifyFlags(enum.IntFlag):
    """Options of the verification of certificates."""

    VERIFY_DEFAULT = 0
    VERIFY_CRL_CHECK_LEAF = 0x4
    VERIFY_CRL_CHECK_CHAIN = 0xC
    VERIFY_X509_STRICT = 0x20
    VERIFY_X509_TRUSTED_FIRST = 0x8000
    VERIFY_X509_PARTIAL_CHAIN = 0x80000


class Options(enum.IntFlag):
    """Options of a context."""

    OP_LEGACY_SERVER_CONNECT = 0x4
    OP_IGNORE_UNEXPECTED_EOF = 0x80
    OP_NO_TICKET = 0x4000
    OP_NO_COMPRESSION = 0x20000
    OP_CIPHER_SERVER_PREFERENCE = 0x400000
    OP_NO_SSLv2 = 0
    OP_NO_SSLv3 = 0x2000000
    OP_NO_TLSv1 = 0x4000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_2 = 0x8000000
    OP_NO_TLSv1_3 = 0x20000000
    OP_NO_RENEGOTIATION = 0x40000000
    OP_SINGLE_DH_USE = OP_SINGLE_ECDH_USE = 0
    OP_ALL = 0x80000050


class Purpose(enum.Enum):
    """Purposes of a context."""

    SERVER_AUTH = "serverAuth"
    CLIENT_AUTH = "clientAuth"


for _names in (_SSLMethod, VerifyMode, VerifyFlags, Options):
    globals().update(_names.__members__)


class SSLSocket(HttpSocket):
    """Socket of a request with the scheme `https`."""

    scheme = "https"

    def getpeercert(self, binary_form: bool = False) -> Any:
        """Returns no details: the host has verified the certificate."""
        return None if binary_form else {}

    def selected_alpn_protocol(self) -> str:
        """Returns the protocol of the socket, `http/1.1`."""
        return "http/1.1"

    def version(self) -> None:
        """Returns `None`, since only the host knows."""

    def cipher(self) -> None:
        """Returns `None`, since only the host knows."""


class SSLObject:
    """TLS without a socket, which does not exist here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise SSLError(1, _ONLY_REQUESTS)


class MemoryBIO(SSLObject):
    """Buffer of an `SSLObject`."""


class SSLSession:
    """Session of an earlier connection."""


_ONLY_REQUESTS = "a plugin has TLS only for HTTP requests, which the host sends"


class SSLContext:
    """Settings of connections. They have no effect: the host decides."""

    def __init__(self, protocol: int = _SSLMethod.PROTOCOL_TLS) -> None:
        is_client = protocol == _SSLMethod.PROTOCOL_TLS_CLIENT
        self.protocol = protocol
        self.check_hostname = is_client
        self.verify_mode = VerifyMode.CERT_REQUIRED if is_client else VerifyMode.CERT_NONE
        self.verify_flags = VerifyFlags.VERIFY_X509_TRUSTED_FIRST
        self.options = Options.OP_ALL
        self.minimum_version = TLSVersion.TLSv1_2
        self.maximum_version = TLSVersion.MAXIMUM_SUPPORTED
        self.hostname_checks_common_name = False
        self.post_handshake_auth = False
        self.keylog_filename: str | None = None

    def wrap_socket(self, sock: Any, *_: Any, **__: Any) -> SSLSocket:
        """Makes the socket of a request use `https`.

        Raises:
            SSLError: If it is any other socket.
        """
        if not isinstance(sock, HttpSocket):
            raise SSLError(1, _ONLY_REQUESTS)
        return SSLSocket(sock.host, sock.port, sock.gettimeout())

    def wrap_bio(self, *_: Any, **__: Any) -> SSLObject:
        """Raises an `SSLError`."""
        return SSLObject()

    def load_cert_chain(self, *_: Any, **__: Any) -> None:
        """Raises an `SSLError`: a plugin has no client certificates."""
        raise SSLError(1, "a plugin cannot use a client certificate")

    def load_verify_locations(self, *_: Any, **__: Any) -> None:
        """Does nothing: the operator configures further authorities."""

    def load_default_certs(self, *_: Any) -> None:
        """Does nothing."""

    def set_default_verify_paths(self) -> None:
        """Does nothing."""

    def set_alpn_protocols(self, protocols: Any) -> None:
        """Does nothing."""

    def set_ciphers(self, ciphers: str) -> None:
        """Does nothing."""

    def get_ca_certs(self, binary_form: bool = False) -> list[Any]:
        """Returns an empty list."""
        return []

    def cert_store_stats(self) -> dict[str, int]:
        """Returns numbers of certificates: none."""
        return {"x509": 0, "crl": 0, "x509_ca": 0}


def create_default_context(*_: Any, **__: Any) -> SSLContext:
    """Returns a context of a client."""
    return SSLContext(_SSLMethod.PROTOCOL_TLS_CLIENT)


def _create_unverified_context(*_: Any, **__: Any) -> SSLContext:
    context = SSLContext(_SSLMethod.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = VerifyMode.CERT_NONE
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context


class DefaultVerifyPaths(NamedTuple):
    """Locations of the authorities' certificates."""

    cafile: str | None = None
    capath: str | None = None
    openssl_cafile_env: str = "SSL_CERT_FILE"
    openssl_cafile: str = ""
    openssl_capath_env: str = "SSL_CERT_DIR"
    openssl_capath: str = ""


def get_default_verify_paths() -> DefaultVerifyPaths:
    """Returns no paths: the host has the authorities."""
    return DefaultVerifyPaths()


def RAND_bytes(size: int) -> bytes:
    """Returns random bytes."""
    return os.urandom(size)
