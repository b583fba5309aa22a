"""A store that is made like S3, whose answers can be held back or refused; run by an environment of its own.

Arguments: its port, a file that says how it behaves, and a file to which it writes a line per request. The first holds
JSON, read at each request: `delay`, seconds that a commit waits at most; `latency`, seconds that each request takes;
`deaf`, whether it takes no conditions; `refuse`, a status for all requests.
"""

import json
import random
import sys
import time
from pathlib import Path

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

port, behaviour, requests = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
store = DomainDispatcherApplication(create_backend_app)


def answer(environ, start):
    told = json.loads(behaviour.read_text())
    with requests.open("a") as file:
        query = environ.get("QUERY_STRING")
        file.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}{'?' if query else ''}{query}\n")
    time.sleep(told.get("latency", 0))
    if told.get("refuse"):
        start(f"{told['refuse']} Refused", [("Content-Length", "0")])
        return [b""]
    if environ["REQUEST_METHOD"] == "PUT" and "/_delta_log/" in environ["PATH_INFO"]:
        time.sleep(random.uniform(0, told.get("delay", 0)))
    if told.get("deaf"):
        environ.pop("HTTP_IF_NONE_MATCH", None)
    return store(environ, start)


make_server("127.0.0.1", port, answer, threaded=True).serve_forever()
