/** What `mbox-importer --help` teaches. */
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { DEFAULT_COORDINATOR, DEFAULT_PROCESS_COUNT, DEFAULT_WAIT_SECONDS, PROCESS_COUNT_MAX } from "./command-line.js";

export const HELP_TEXT = `Gives every message of your mail archives a call number and stores it under that number.

  mbox-importer <mbox or maildir>… --archive FILE [options]

  mbox-importer letters.mbox --archive letters.db
  mbox-importer ~/Maildir lists/*.mbox --archive mail.db --processes 8 --json

Each argument is an mbox file or a maildir (a folder with cur/ and new/ inside; its subfolders are maildirs of their own).

Options
  --archive FILE       the SQLite file that the messages go to; made when it is not there. Must be given
  --coordinator URL    who leases runs of numbers (default ${DEFAULT_COORDINATOR}; start one with: callnumber serve)
  --namespace NAME     the space of numbers to draw from (default ${DEFAULT_NAMESPACE})
  --token-file FILE    where the token stands that the coordinator asks for, when it asks for one
  --processes N        how many processes import at once, 1 to ${PROCESS_COUNT_MAX} (default ${DEFAULT_PROCESS_COUNT}; more than cores does not help)
  --refill WHEN        ahead (default): lease the next run before it is needed, so that nobody waits
                       when_empty: only when the last number is used, so that a small import leaves fewer unused
  --wait SECONDS       how long to wait for an absent coordinator, 1 to 3600 (default ${DEFAULT_WAIT_SECONDS})
  --json               the summary as one JSON object on stdout
  -h, --help           this text

In the environment: CALLNUMBER_COORDINATOR, CALLNUMBER_NAMESPACE and CALLNUMBER_TOKEN_FILE instead of the options, and
CALLNUMBER_TOKEN, the token itself, where there is no file of it.

What you can rely on
  · Nothing is ever overwritten. A call number that stands in the archive already stops the import: see README.md.
  · The same command again adds nothing twice and goes on where an import was interrupted, whatever interrupted it.
  · The archive remembers the store of its first number and refuses the numbers of any other.
  · No message is dropped in silence: what can't be read is stored as it is and named by source, number and byte.

Ctrl-C once: finish what is in hand, report, end. Twice: end at once; what is committed stands.

Exit status: 0 all is stored · 1 an error, or parts that could not be stored · 2 a wrong command line · 130, 143 stopped

Ask the archive (sqlite3 letters.db)
  select call_number, date, from_header, subject from messages order by date limit 10;
  select source, number, byte_offset, problem from messages where problem is not null;
`;
