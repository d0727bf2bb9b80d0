#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""tls_echo and clients that are not weft's: Python's ssl and asyncio, openssl s_client, curl."""

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

OPENSSL = shutil.which("openssl")


def receive(client, count):
    got = b""
    while len(got) < count:
        piece = client.recv(1 << 16)
        if not piece:
            break
        got += piece
    return got


class TlsEchoTest(unittest.TestCase):
    def serve(self, *flags):
        server = program.Program("tls_echo", "--port=0", *flags)
        self.addCleanup(server.__exit__)
        return server

    def stop(self, server):
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.errors)
        return server.lines[-1]

    def certificate(self, server):
        """That which the server shows, as PEM."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with self.connect(server, context) as client:
            pem = ssl.DER_cert_to_PEM_cert(client.getpeercert(binary_form=True))
            client.unwrap().close()
        return pem

    def believing(self, server):
        """A context that believes the certificate that the server has made."""
        return ssl.create_default_context(cadata=self.certificate(server))

    def connect(self, server, context, name="localhost"):
        plain = socket.create_connection(server.address(), timeout=program.PATIENCE)
        return context.wrap_socket(plain, server_hostname=name)

    def test_python(self):
        server = self.serve()
        context = self.believing(server)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context.maximum_version = version
            for name in ("localhost", "127.0.0.1"):
                with self.connect(server, context, name) as client:
                    for size in (1, 1000, 16_384, 16_385):
                        data = os.urandom(size)
                        client.sendall(data)
                        self.assertEqual(receive(client, size), data)
                    self.assertEqual(client.version(), version.name.replace("_", "."))
                    # Both say goodbye.
                    client.unwrap().close()

        self.assertEqual(self.stop(server), "done: 0 connections cut off")
        self.assertEqual(server.errors, [])

    def test_python_does_not_believe_it_without_being_told(self):
        server = self.serve()
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.connect(server, ssl.create_default_context())
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.connect(server, self.believing(server), "example.org")

        self.stop(server)
        self.assertTrue([line for line in server.errors if "alert unknown ca" in line], server.errors)
        self.assertRegex(server.errors[0], r"TLS handshake with 127\.0\.0\.1:\d+: ")

    def test_python_takes_its_session_up_again(self):
        server = self.serve()
        context = self.believing(server)
        session = None
        for i in range(3):
            plain = socket.create_connection(server.address(), timeout=program.PATIENCE)
            with context.wrap_socket(plain, server_hostname="localhost", session=session) as client:
                client.sendall(b"hello")
                self.assertEqual(receive(client, 5), b"hello")
                self.assertEqual(client.session_reused, i > 0)
                session = client.session

    def test_asyncio(self):
        server = self.serve()
        context = self.believing(server)
        data = os.urandom(3_000_000)

        async def client(number):
            reader, writer = await asyncio.open_connection(
                *server.address(), ssl=context, server_hostname="localhost"
            )
            writer.write(data)
            self.assertEqual(await reader.readexactly(len(data)), data)
            writer.close()
            await writer.wait_closed()

        async def main():
            await asyncio.gather(*(client(i) for i in range(5)))

        asyncio.run(main())

        self.assertEqual(self.stop(server), "done: 0 connections cut off")
        self.assertEqual(server.errors, [])

    def test_a_client_that_is_cut_off(self):
        server = self.serve()
        client = self.connect(server, self.believing(server))
        client.sendall(b"hello")
        self.assertEqual(receive(client, 5), b"hello")
        client.close()  # Without a word.

        self.stop(server)
        self.assertTrue([line for line in server.errors if "close_notify" in line], server.errors)

    def test_signals_say_goodbye(self):
        server = self.serve()
        client = self.connect(server, self.believing(server))
        client.sendall(b"hello")
        self.assertEqual(receive(client, 5), b"hello")
        server.signal(signal.SIGTERM)

        # An end that is no error: the close_notify has come.
        client.suppress_ragged_eofs = False
        self.assertEqual(client.recv(1), b"")
        client.unwrap().close()
        self.assertEqual(server.wait(), 0)
        self.assertEqual(server.lines[-1], "done: 0 connections cut off")

    def test_a_certificate_from_files(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        with tempfile.TemporaryDirectory() as folder:
            cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
            subprocess.run(
                [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
                + ["-subj", "/CN=files", "-addext", "subjectAltName=DNS:files.example"]
                + ["-keyout", key, "-out", cert],
                check=True,
                capture_output=True,
            )
            server = self.serve("--cert=" + cert, "--key=" + key)
            context = ssl.create_default_context(cafile=cert)
            with self.connect(server, context, "files.example") as client:
                client.sendall(b"hello")
                self.assertEqual(receive(client, 5), b"hello")
                self.assertEqual(dict(x[0] for x in client.getpeercert()["subject"])["commonName"], "files")
            done = program.run("tls_echo", "--port=0", "--cert=" + cert)
            self.assertEqual(done.code, 2)
            self.assertIn("private key", done.err)

    def test_openssl_s_client(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        server = self.serve()
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as cert:
            cert.write(self.certificate(server))
            cert.flush()
            for version in ("-tls1_2", "-tls1_3"):
                client = subprocess.Popen(
                    [OPENSSL, "s_client", "-connect", "%s:%d" % server.address(), version]
                    + ["-servername", "localhost", "-verify_return_error", "-CAfile", cert.name]
                    + ["-verify_hostname", "localhost", "-quiet"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                with client:
                    client.stdin.write(b"hello, s_client\n")
                    client.stdin.flush()
                    self.assertEqual(client.stdout.readline(), b"hello, s_client\n")
                    client.stdin.close()
                    client.terminate()
        self.stop(server)

    def test_openssl_s_client_renegotiates_in_vain_and_updates_its_keys(self):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        server = self.serve()
        for version, command, answer in (("-tls1_3", b"K\n", b"KEYUPDATE"), ("-tls1_2", b"R\n", b"RENEGOTIATING")):
            client = subprocess.Popen(
                [OPENSSL, "s_client", "-connect", "%s:%d" % server.address(), version],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            with client:
                # As a command it has to come alone, when the handshake is done.
                for line in client.stdout:
                    if b"Verify return code" in line:
                        break
                client.stdin.write(command)
                client.stdin.flush()
                for line in client.stdout:
                    if answer in line:
                        break
                else:
                    self.fail("s_client did not say " + answer.decode())
                client.kill()
        # And it still serves.
        with self.connect(server, self.believing(server)) as other:
            other.sendall(b"hello")
            self.assertEqual(receive(other, 5), b"hello")

    def test_plain_text_is_no_handshake(self):
        server = self.serve()
        with socket.create_connection(server.address(), timeout=program.PATIENCE) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            client.settimeout(program.PATIENCE)
            receive(client, 1 << 20)
        self.stop(server)
        self.assertIn("http request", server.errors[0])

    def test_wrong_flags(self):
        done = program.run("tls_echo", "--cert=/nowhere.pem")
        self.assertEqual(done.code, 2)
        self.assertIn("/nowhere.pem", done.err)
        done = program.run("tls_echo", "--key=/nowhere.pem")
        self.assertEqual(done.code, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
