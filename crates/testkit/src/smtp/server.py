"""A mail server that keeps what it takes, on 127.0.0.1.

Usage: server.py PORT DIRECTORY. Each mail that was taken is a line of JSON in DIRECTORY/mails.jsonl. While there is a file
DIRECTORY/reply, every recipient gets its first line for an answer.
"""

import asyncio
import json
import os
import sys

from aiosmtpd.controller import Controller


class Keeper:
    def __init__(self, directory):
        self.mails = os.path.join(directory, "mails.jsonl")
        self.reply = os.path.join(directory, "reply")

    async def handle_RCPT(self, server, session, envelope, address, options):
        try:
            with open(self.reply, encoding="utf-8") as file:
                return file.readline().strip()
        except FileNotFoundError:
            envelope.rcpt_tos.append(address)
            return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "content": envelope.content.decode("utf-8", "replace"),
        }
        with open(self.mails, "a", encoding="utf-8") as file:
            file.write(json.dumps(mail) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return "250 kept"


async def main():
    port, directory = int(sys.argv[1]), sys.argv[2]
    factory = Controller(Keeper(directory), hostname="127.0.0.1", port=port).factory
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
