"""A subscriber in Python that takes part from the documents alone: asyncapi.json, the schemas, the hostile corpus.

It pulls from a durable of its own, reads each message strictly, and settles it once: the claim in the inbox and the effect
are one commit in SQLite, and only then is the message acknowledged. What cannot be read is parked with its bytes.

    pip install -r docs/guides/requirements.txt
    python docs/guides/subscriber.py --nats nats://127.0.0.1:4222 --durable audit --contracts events --state audit.db
"""

import argparse
import asyncio
import json
import pathlib
import re
import sqlite3
import uuid
from datetime import datetime

import jsonschema

STREAM = "EVT"
BODY_BYTES_MAX = 61_440
DEPTH_MAX = 32
INTEGER_MAX = 2**53 - 1
ATTEMPTS_MAX = 10
NAK_SECONDS = 1
# A version from the future waits ten minutes for a deployment that can read it.
NEWER_SECONDS = 5
NEWER_ATTEMPTS = 120


class Parked(Exception):
    """A message that no repetition makes readable. The reason is the word of the hostile corpus."""

    def __init__(self, reason, detail=""):
        super().__init__(detail or reason)
        self.reason = reason


# --- the envelope: CloudEvents attributes in headers -----------------------------------------------------------------


def header_value(raw):
    """Undoes double-quoting, then percent-encoding, exactly once each."""
    text = raw.strip(" \t")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise Parked("malformed_headers", "a % without two digits")
    try:
        value = re.sub(rb"%(..)", lambda code: bytes.fromhex(code[1].decode()), text.encode()).decode()
    except UnicodeDecodeError as error:
        raise Parked("malformed_headers", str(error)) from None
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in value):
        raise Parked("malformed_headers", "a control character")
    return value


def fold(headers):
    """Names in lower case; the same header twice is one when it says the same."""
    fields = {}
    for name, raw in headers:
        name = name.lower()
        if name.startswith("ce-") or name in ("content-type", "mesh-hops"):
            value = header_value(raw)
            if fields.setdefault(name, value) != value:
                raise Parked("malformed_headers", f"{name} contradicts itself")
    return {name: value for name, value in fields.items() if value}


def identifier(fields, name):
    try:
        value = uuid.UUID(fields[name])
    except (KeyError, ValueError):
        value = uuid.UUID(int=0)
    if value.int == 0:
        raise Parked("malformed_headers", f"{name} is no id")
    return str(value)


def envelope(subject, headers):
    """What the headers say, if they and the subject agree."""
    fields = fold(headers)
    media = lambda name: fields.get(name, "application/json").split(";")[0].strip().lower()
    event_type = re.fullmatch(r"([a-z][a-z0-9_]{0,31}\.[a-z][a-z0-9_]{0,31})\.v([1-9]\d{0,2})", fields.get("ce-type", ""))
    keys = {fields[name] for name in ("ce-partitionkey", "ce-subject") if name in fields}
    well_formed = (
        fields.get("ce-specversion") == "1.0"
        and media("content-type") == media("ce-datacontenttype") == "application/json"
        and event_type
        and fields.get("ce-source")
        and len(keys) == 1
        and all(re.fullmatch(r"\d*", fields.get(name, "")) for name in ("ce-sequence", "mesh-hops"))
    )
    if not well_formed:
        raise Parked("malformed_headers")
    try:
        datetime.fromisoformat(fields.get("ce-time", ""))
    except ValueError as error:
        raise Parked("malformed_headers", str(error)) from None
    fact, major = event_type[1], int(event_type[2])
    schema = fields.get("ce-dataschema", "")
    if schema.startswith("urn:mesh:schema:") and not re.fullmatch(rf"urn:mesh:schema:{re.escape(fact)}:{major}:\d+", schema):
        raise Parked("malformed_headers", "the schema is another's")
    for name in ("ce-causationid", "ce-occurrenceid"):
        if name in fields:
            identifier(fields, name)
    meta = {"id": identifier(fields, "ce-id"), "flow": identifier(fields, "ce-correlationid"), "fact": fact, "major": major, "key": keys.pop()}
    if subject != f"evt.{fact}.v{major}.{bucket(meta['key'])}":
        raise Parked("subject_mismatch", subject)
    return meta


def bucket(key):
    """FNV-1a over the key, 64 buckets."""
    value = 0x811C9DC5
    for byte in key.encode():
        value = ((value ^ byte) * 0x01000193) % 2**32
    return value % 64


# --- the body: a strict profile of JSON ------------------------------------------------------------------------------


def body(data):
    """The object, or why it is outside the profile."""
    if len(data) > BODY_BYTES_MAX:
        raise Parked("too_large")
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise Parked("bom")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Parked("invalid_utf8", str(error)) from None
    if not text.lstrip(" \t\r\n").startswith("{"):
        raise Parked("not_an_object")
    if depth(text) > DEPTH_MAX:
        raise Parked("too_deep")
    if "\0" in text:
        raise Parked("nul")
    try:
        reader = json.JSONDecoder(object_pairs_hook=members, parse_int=integer, parse_float=number, parse_constant=constant)
        text = text.strip(" \t\r\n")
        value, end = reader.raw_decode(text)
    except json.JSONDecodeError as error:
        raise Parked("malformed_json", str(error)) from None
    if end != len(text):
        raise Parked("not_an_object", "something follows")
    check_strings(value)
    return value


def depth(text):
    """How deep brackets are nested, those in strings not counted."""
    deepest = open_now = 0
    for bracket in re.findall(r"[\[{\]}]", re.sub(r'"(?:\\.|[^"\\])*"', '""', text)):
        open_now += 1 if bracket in "[{" else -1
        deepest = max(deepest, open_now)
    return deepest


def members(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Parked("duplicate_key")
    # A member that is null is an absent one.
    return {name: member for name, member in value.items() if member is not None}


def integer(text):
    if abs(int(text)) > INTEGER_MAX:
        raise Parked("number_range", text)
    return int(text)


def number(text):
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Parked("number_range", text)
    return int(value) if value.is_integer() else value


def constant(text):
    raise Parked("malformed_json", text)


def check_strings(value):
    if isinstance(value, dict):
        for name, member in value.items():
            check_strings(name)
            check_strings(member)
    elif isinstance(value, list):
        for element in value:
            check_strings(element)
    elif isinstance(value, str):
        if "\0" in value:
            raise Parked("nul")
        if any(0xD800 <= ord(character) < 0xE000 for character in value):
            raise Parked("lone_surrogate")


# --- the contracts: the newest revision of each schema ---------------------------------------------------------------


class Contracts:
    """Reads the facts that it was told to hear, in the majors that have a schema."""

    def __init__(self, folder, facts):
        self.validators = {}
        for fact in facts:
            for major in (pathlib.Path(folder) / "schemas" / fact).glob("v*"):
                revisions = sorted(major.glob("r*.schema.json"), key=lambda path: int(path.name[1:].split(".")[0]))
                schema = json.loads(revisions[-1].read_text())
                checker = jsonschema.FormatChecker(formats=["uuid"])
                self.validators[fact, int(major.name[1:])] = jsonschema.Draft202012Validator(schema, format_checker=checker)

    def read(self, subject, headers, data):
        """The envelope and the body of a message."""
        meta = envelope(subject, headers)
        majors = [major for fact, major in self.validators if fact == meta["fact"]]
        if not majors:
            raise Parked("unexpected_type", meta["fact"])
        if meta["major"] not in majors:
            raise Parked("newer_major" if meta["major"] > max(majors) else "no_lift", str(meta["major"]))
        value = body(data)
        error = jsonschema.exceptions.best_match(self.validators[meta["fact"], meta["major"]].iter_errors(value))
        if error:
            raise Parked("bad_body", error.message)
        return meta, value


# --- the inbox: the claim and the effect are one commit --------------------------------------------------------------


class Inbox:
    """Settled facts, what they led to, and what was given up."""

    def __init__(self, path):
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.executescript(
            """
            pragma journal_mode = wal;
            create table if not exists inbox (event_id text primary key);
            create table if not exists effect (key text not null, fact text not null, body text not null);
            create table if not exists dead_letter (
                id integer primary key, event_id text, reason text not null, detail text not null,
                subject text not null, headers text not null, payload blob not null);
            """
        )

    def settle(self, meta, value):
        """Handles a fact once. Returns whether this was the time."""
        self.database.execute("begin immediate")
        try:
            claimed = self.database.execute("insert or ignore into inbox values (?)", (meta["id"],)).rowcount == 1
            if claimed:
                handle(self.database, meta, value)
            self.database.execute("commit")
            return claimed
        except BaseException:
            self.database.execute("rollback")
            raise

    def park(self, subject, headers, data, reason, detail):
        """Keeps a message as it came. The same message twice is kept once."""
        row = (reason, detail, subject, json.dumps(headers), data)
        self.database.execute(
            "insert into dead_letter (reason, detail, subject, headers, payload) select ?1, ?2, ?3, ?4, ?5 "
            "where not exists (select 1 from dead_letter where subject = ?3 and headers = ?4 and payload = ?5)",
            row,
        )


def handle(database, meta, value):
    """The business: here, an audit log."""
    database.execute("insert into effect values (?, ?, ?)", (meta["key"], meta["fact"], json.dumps(value, sort_keys=True)))


# --- the consumer ----------------------------------------------------------------------------------------------------


async def consume(message, contracts, inbox):
    """One message to one verdict; whatever is not settled comes again with a delay."""
    headers = list((message.headers or {}).items())
    try:
        meta, value = contracts.read(message.subject, headers, message.data)
        inbox.settle(meta, value)
    except Parked as parked:
        if parked.reason == "newer_major" and message.metadata.num_delivered < NEWER_ATTEMPTS:
            await message.nak(delay=NEWER_SECONDS)
            return
        inbox.park(message.subject, headers, message.data, parked.reason, str(parked))
    except Exception as error:  # An outage, or a mistake of ours: again later, and not for ever.
        print(f"{message.subject}: {error}")
        if message.metadata.num_delivered < ATTEMPTS_MAX or isinstance(error, sqlite3.OperationalError):
            await message.nak(delay=NAK_SECONDS)
            return
        inbox.park(message.subject, headers, message.data, "attempts_exhausted", str(error))
    await message.ack_sync()


async def run(arguments):
    import nats

    inbox, contracts = Inbox(arguments.state), Contracts(arguments.contracts, arguments.fact)
    # Every user has an inbox prefix of its own; under the shared one anybody could read its replies.
    client = await nats.connect(arguments.nats, inbox_prefix=f"_INBOX_{arguments.durable}".encode())
    # Bound to what exists: a service creates no consumer.
    durable = await client.jetstream().pull_subscribe_bind(durable=arguments.durable, stream=STREAM)
    while True:
        try:
            messages = await durable.fetch(64, timeout=5)
        except nats.errors.TimeoutError:
            if arguments.until_idle:
                break
            continue
        for message in messages:
            await consume(message, contracts, inbox)
    await client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--durable", required=True, help="also the name of the NATS user")
    parser.add_argument("--contracts", default="events", help="the folder with schemas/")
    parser.add_argument("--fact", action="append", required=True, help="<domain>.<fact>, as often as needed")
    parser.add_argument("--state", required=True, help="the SQLite file with the inbox")
    parser.add_argument("--until-idle", action="store_true", help="end when nothing comes for five seconds")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
