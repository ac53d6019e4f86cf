/** The client of docs/how-to/write-a-client.md, and one for each rule of the kit that breaks it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../processes/command.js";

/** The example as the page has it. */
export function exampleClient(): string {
  const page = readFileSync(join(REPOSITORY, "docs", "how-to", "write-a-client.md"), "utf8");
  const [, code] = /^```python\n([\s\S]*?)^```$/m.exec(page) ?? [];
  if (code === undefined) throw new Error("docs/how-to/write-a-client.md has no example in Python");
  return code;
}

type Change = readonly [found: string, instead: string];

/** How to break each rule, by its name. */
export const BREAKS: Readonly<Record<string, readonly Change[]>> = {
  encoding: [["self.sequence - 1)", "16384 - self.sequence)"]],
  "fewer-runs": [
    ['"runCount": 1,', '"runCount": 2,'],
    ['(nonce, "main", 1)', '(nonce, "main", 2)'],
  ],
  "lease-request": [["time.time() * 1000", "time.time()"]],
  "new-nonce": [["nonce = secrets.token_urlsafe(12)", 'nonce = "the-same-each-time"']],
  "last-run": [["= ledger_id(self.lease), None", "= self.last_run or ledger_id(self.lease), None"]],
  token: [["if token:", "if None:"]],
  "one-request": [
    [
      "            limit_s = min(",
      `            also = (f"{NAMESPACE}/leases", {**body, "nonce": nonce + "x"}, 60)
            threading.Thread(target=self.post, args=also, daemon=True).start()
            limit_s = min(`,
    ],
  ],
  restart: [
    [
      "self.lease, self.sequence = self.leased(), 0",
      `kept = os.environ["TMPDIR"] + "/" + self.host
                if not os.path.exists(kept): open(kept, "w").write(json.dumps(self.leased()))
                self.lease, self.sequence = json.load(open(kept)), 0`,
    ],
  ],
  fork: [["if self.pid != os.getpid():", "if None:"]],
  "fork-knows": [
    [
      "os.getpid(), None, None, None",
      "os.getpid(), None, None, None\n                self.last_run = self.store_id = None",
    ],
  ],
  "no-run": [
    ["self.report, self.lease = self.progress", "self.old = self.lease; self.report, self.lease = self.progress"],
    [
      "self.lease, self.sequence = self.leased(), 0",
      `try: self.lease, self.sequence = self.leased(), 0
                except LeaseError: self.lease, self.sequence = self.old, 0`,
    ],
  ],
  "overlapping-lease": [
    ['"runCount": 1,', '"runCount": 2,'],
    ['of_request != (nonce, "main", 1)', 'of_request[:2] != (nonce, "main")'],
    ["self.sequence == 16384:", 'self.sequence == 16384 * self.lease["runCount"]:'],
    [
      'self.lease["firstRun"], self.sequence - 1)',
      'self.lease["firstRun"] + (self.sequence - 1) // 16384, (self.sequence - 1) % 16384)',
    ],
    ["last = self.sequence - 1 if", "last = (self.sequence - 1) % 16384 if"],
  ],
  "expected-store": [["self.wait_s = store_id,", "self.wait_s = None,"]],
  "other-store": [['self.stop("the lease is of another store")', "pass"]],
  "repeated-lease": [["ledger_id(lease) <= self.last_run", "ledger_id(lease) < self.last_run"]],
  "decreasing-lease": [["ledger_id(lease) <= self.last_run", 'lease["firstRun"] <= self.last_run % 2**30']],
  "stop-store-forked": [['"store_forked"', '"another"']],
  "stop-run-above-high-water-mark": [['"run_above_high_water_mark"', '"another"']],
  "stop-store-id-mismatch": [['"store_id_mismatch"', '"another"']],
  "exhausted-report": [['body["report"] = self.report', "pass"]],
  "closing-report": [['self.lease and self.progress("closed")', "None"]],
  "failed-report": [
    ["            self.post(f", "            status, _ = self.post(f"],
    ["report, self.request_s)", 'report, self.request_s)\n            if status != 200: raise LeaseError("lost")'],
  ],
  "lost-response": [
    ["return answers[0] if answers else (0, {})", 'return answers[0] if answers else (0, {"code": ""})'],
  ],
  "half-response": [
    [
      "answer = json.loads(response.read())",
      `try: content = response.read()
                except http.client.IncompleteRead as cut: content = cut.partial
                answer = json.loads(content if content.endswith(b"}") else content + b"}")`,
    ],
  ],
  "slow-response": [["sender.join(limit_s)", "sender.join()"]],
  "late-response": [
    ["answers = []", 'answers = self.__dict__.setdefault("answers", [])'],
    ["return answers[0] if", "return answers.pop(0) if"],
    ['of_request != (nonce, "main", 1)', 'of_request[1:] != ("main", 1)'],
    ["timeout=limit_s", "timeout=60"],
  ],
  "growing-time-limit": [["self.request_s * 2 ** min(attempt, 3)", "self.request_s"]],
  "stale-response": [['of_request != (nonce, "main", 1)', 'of_request[1:] != ("main", 1)']],
  "foreign-lease": [['of_request != (nonce, "main", 1)', "(of_request[0], of_request[2]) != (nonce, 1)"]],
  "malformed-lease": [['is_int(lease.get("version"), 0, 7)', 'is_int(lease.get("version"), 0, 8)']],
  "unknown-fields": [
    ["        return lease\n", '        if len(lease) > 8: raise LeaseError("")\n        return lease\n'],
  ],
  "retry-after": [['answer.get("retryAfterMs", 0) / 1000', "0"]],
  "proxy-error": [
    [
      "except (OSError, ValueError,",
      'except ValueError: answers.append((502, {"code": ""}))\n            except (OSError,',
    ],
  ],
  "growing-delay": [["min(0.1 * 2**attempt, 10)", "0.01"]],
  "final-error": [['if "code" in answer and "retryAfterMs" not in answer:', "if None:"]],
};

/** @throws Error when the page has changed, so that a change is not found once. */
export function brokenClient(rule: string): string {
  return (BREAKS[rule] ?? []).reduce((code, [found, instead]) => {
    if (code.split(found).length !== 2) throw new Error(`the example does not have ${JSON.stringify(found)} once`);
    return code.replace(found, () => instead);
  }, exampleClient());
}
