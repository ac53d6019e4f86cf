"""Stores the messages of an mbox in SQLite, each under a call number.
   python3 import_mail.py letters.mbox mail.db"""
import hashlib
import re
import signal
import sqlite3
import sys

from callnumber import Client, ClientError

BATCH_SIZE = 100

SCHEMA = """
  pragma journal_mode = wal; -- Others read while this writes.
  pragma synchronous = full; -- A commit is on the disk before its numbers count as used.
  create table if not exists facts (name text primary key, value text not null);
  create table if not exists messages (
    call_number text not null collate binary primary key check ( -- Byte for byte: a and A are different digits.
      length(cast(call_number as blob)) = 8 and call_number not glob '*[^0-9A-Za-z]*' and call_number <= 'dxlGgaI3'),
    content_hash blob not null unique, -- Which message it is. A number can't say that.
    content blob not null
  );
"""


def main() -> int:
    mbox, archive = sys.argv[1:]
    # Each transaction begins and ends where this program says.
    database = sqlite3.connect(archive, timeout=60, isolation_level=None)
    database.executescript(SCHEMA)
    # After a signal, too, `with` closes the client. The next import goes on from there.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    try:
        # Numbers of any other store than the pinned one are rejected.
        with Client(holder="minimal-importer", expected_store_id=pinned_id(database)) as client:
            messages = messages_of(mbox)
            for start in range(0, len(messages), BATCH_SIZE):
                store(database, client, messages[start : start + BATCH_SIZE])
        # The rest of the run is given up. No run is kept for the next time: there are a billion.
    except (ClientError, sqlite3.IntegrityError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        database.close()
    return 0


def store(database: sqlite3.Connection, client: Client, batch: "list[bytes]") -> None:
    """In this order: look up, take numbers, lock, store all or nothing."""
    fresh = [(hash_of(content), content) for content in batch if not is_stored(database, hash_of(content))]
    if not fresh:
        return
    # May wait for the coordinator, so nothing is locked yet.
    numbers = client.take(len(fresh))
    database.execute("begin immediate")
    try:
        if pinned_id(database) is None:
            database.execute("insert into facts values ('store_id', ?)", (client.store_id,))
        if pinned_id(database) != client.store_id:
            raise sqlite3.IntegrityError(f"The archive is pinned to the store {pinned_id(database)}")
        for number, (content_hash, content) in zip(numbers, fresh):
            # Another process, or a copy in this file, may have been faster. Its number is left unused.
            if not is_stored(database, content_hash):
                # A plain INSERT fails if the number exists. OR IGNORE, OR REPLACE or an upsert would lose a message.
                database.execute("insert into messages values (?, ?, ?)", (number, content_hash, content))
        database.execute("commit")
    except BaseException:
        if database.in_transaction:
            database.execute("rollback")
        raise
    print(f"{len(fresh)} messages, the first as {numbers[0]}")


def pinned_id(database: sqlite3.Connection) -> "str | None":
    row = database.execute("select value from facts where name = 'store_id'").fetchone()
    return None if row is None else str(row[0])


def is_stored(database: sqlite3.Connection, content_hash: bytes) -> bool:
    query = "select 1 from messages where content_hash = ?"
    return database.execute(query, (content_hash,)).fetchone() is not None


def hash_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def messages_of(path: str) -> "list[bytes]":
    """Real mailboxes are less regular, and larger: see the sources of callnumber-archive."""
    with open(path, "rb") as file:
        parts = re.split(rb"(?:(?<=\n\n)|^)(?=From \S+ .*\d{4}\n)", file.read())
    return [part for part in parts if part]


if __name__ == "__main__":
    sys.exit(main())
