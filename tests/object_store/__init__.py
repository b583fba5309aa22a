"""A store that is made like S3, in a process of this machine, and what Spark needs to reach it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pyspark

from tests.environments import installed

FOLDER = Path(__file__).parent
BUCKET = "lakes"
SDK = "2.35.4"
"""The version of Amazon's library that Hadoop's S3 client is made for; of it the parts alone that are needed."""


def packages() -> dict[str, str]:
    """Spark's settings that bring Hadoop's S3 client."""
    jars = Path(pyspark.__file__).with_name("jars")
    (client,) = jars.glob("hadoop-client-api-*.jar")
    hadoop = client.stem.rpartition("-")[2]
    parts = [f"software.amazon.awssdk:{name}:{SDK}" for name in ("s3", "s3-transfer-manager", "sts")]
    return {
        "spark.jars.packages": ",".join([f"org.apache.hadoop:hadoop-aws:{hadoop}", *parts]),
        "spark.jars.excludes": "software.amazon.awssdk:bundle,org.slf4j:slf4j-api",
    }


class ObjectStore:
    """The server, from its start to its end."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.behaviour, self.requests_file = folder / "behaviour.json", folder / "requests.txt"
        self.requests_file.touch()
        self.behave()
        python = installed("object-store", FOLDER / "requirements.txt") / "python"
        command = [python, FOLDER / "server.py", str(self.port), self.behaviour, self.requests_file]
        self._said = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(command, stdout=self._said, stderr=self._said)
        self._wait()
        self.put("", b"")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self) -> dict[str, str]:
        """What Spark is told of the store, in Hadoop's words."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def options(self) -> dict[str, str]:
        """The same in delta-rs's."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            "AWS_ALLOW_HTTP": "true",
        }

    def behave(self, **how: object) -> None:
        """From the next request on."""
        self.behaviour.write_text(json.dumps(how))

    def put(self, key: str, body: bytes) -> None:
        self._ask("PUT", key, body)

    def delete(self, folder: str) -> None:
        """All objects below a folder."""
        said = self._ask("GET", f"?list-type=2&prefix={folder}/").decode()
        for key in re.findall("<Key>(.*?)</Key>", said):
            self._ask("DELETE", key)

    def _ask(self, method: str, key: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self.endpoint}/{BUCKET}/{key}".rstrip("/"), data=body, method=method)
        request.add_header("Content-Type", "application/octet-stream")
        # Nobody looks whether the signature is right.
        request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=key/20250101/us-east-1/s3/aws4_request")
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())

    def requests(self) -> list[str]:
        """One per request so far: its method and its path."""
        return self.requests_file.read_text().splitlines()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._said.close()

    def _wait(self) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.endpoint).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                assert self._process.poll() is None, "the store ended at its start"
                assert time.monotonic() < until, "the store did not start"
                time.sleep(0.2)
