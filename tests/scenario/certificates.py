"""Certificate authorities for scenario tests, by the openssl program: one a zone, each in a folder of its own."""
import pathlib
import subprocess
import time

CONFIG = """
[ca]
default_ca = zone
[zone]
new_certs_dir = {folder}
database = {folder}/index
serial = {folder}/serial
private_key = {folder}/ca.key
certificate = {folder}/ca.pem
default_md = sha256
policy = anything
unique_subject = no
copy_extensions = none
[anything]
commonName = supplied
[issued]
basicConstraints = CA:FALSE
extendedKeyUsage = {usage}
subjectAltName = IP:127.0.0.1,DNS:localhost
"""


def run(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def key_options(path):
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(path))


def stamp(seconds_from_now):
    return time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + seconds_from_now))


class Files:
    """Certificate, key and authority of one holder."""

    def __init__(self, cert, key, ca):
        self.cert, self.key, self.ca = str(cert), str(key), str(ca)

    def settings(self, link):
        return [word for name, path in (("cert", self.cert), ("key", self.key), ("ca", self.ca))
                for word in ("--set", f"security.{link}.{name}={path}")]

    def flags(self):
        return ["--tls-cert", self.cert, "--tls-key", self.key, "--tls-ca", self.ca]


class Authority:
    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(mode=0o700)
        self.ca = self.folder / "ca.pem"
        run("req", "-x509", *key_options(self.folder / "ca.key"), "-subj", f"/CN={name}", "-days", "2",
            "-out", str(self.ca))
        (self.folder / "index").touch()
        (self.folder / "serial").write_text("01\n")

    def issue(self, name, usage="serverAuth,clientAuth", begins=-3600, ends=86400, file=None):
        stem = self.folder / (file or name)
        config, request, cert, key = (stem.with_suffix(end) for end in (".cnf", ".csr", ".pem", ".key"))
        config.write_text(CONFIG.format(folder=self.folder, usage=usage))
        run("req", "-new", *key_options(key), "-subj", f"/CN={name}", "-out", str(request))
        key.chmod(0o600)
        run("ca", "-batch", "-notext", "-config", str(config), "-extensions", "issued", "-startdate", stamp(begins),
            "-enddate", stamp(ends), "-in", str(request), "-out", str(cert))
        return Files(cert, key, self.ca)
