"""A certificate authority for one federation, the server's certificate, and a key for every site."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from feddyn.records.files import write_whole

LEEWAY = datetime.timedelta(minutes=5)


def authority(directory: Path, address: str, days: int) -> None:
    """ca.crt and ca.key, and server.crt and server.key, which are for an address and for loopback."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "feddyn federation CA")])
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    ca = (
        _dated(ca_name, ca_name, ca_key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=False, key_cert_sign=True, crl_sign=True, decipher_only=False, **usage),
            critical=True,
        )
        .sign(ca_key, hashes.SHA256())
    )
    issuer = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    server = (
        _dated(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)]), ca_name, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(_names(address)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    for name, certificate, secret in (("ca", ca, ca_key), ("server", server, key)):
        write_whole(directory / f"{name}.crt", [certificate.public_bytes(Encoding.PEM)])
        private = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_whole(directory / f"{name}.key", [private], private=True)


def site_key(directory: Path) -> None:
    """site.key, and site.pub, with which the operator registers the site."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_whole(directory / "site.key", [private], private=True)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_whole(directory / "site.pub", [public + b"\n"])


def _dated(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LEEWAY)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _names(address: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    try:
        own: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        own = x509.DNSName(address)
    return names if own in names else [own, *names]
