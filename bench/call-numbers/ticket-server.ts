/**
 * A counter in Redis that is incremented for each number, over a plain socket. Not through a Redis client: ioredis brings a class that
 * extends String, and from then on everything in the process that cuts or reads a text takes several times as long (Node 20).
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";

export interface TicketServer {
  /** Takes so many numbers, with one write. */
  take(count: number): Promise<readonly string[]>;
  close(): void;
}

/** `url`: `redis://[user][:password]@host:port[/database]`. */
export async function openTicketServer(url: string): Promise<TicketServer> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const socket = connect(Number(port || 6379), hostname);
  await once(socket, "connect");
  socket.setNoDelay(true);
  socket.setEncoding("latin1");
  let unread = "";
  let replies: string[] = [];
  let expectedCount = 0;
  let onReplies: (numbers: readonly string[]) => void = () => {};
  socket.on("data", (text) => {
    const lines = (unread + String(text)).split("\r\n");
    unread = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("-")) throw new Error(`Redis returned an error: ${line}`);
      replies.push(line.slice(1));
    }
    if (replies.length === expectedCount) onReplies(replies);
  });
  const send = (args: readonly string[], times: number) => {
    const command = `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`;
    expectedCount = times;
    replies = [];
    return new Promise<readonly string[]>((resolve) => {
      onReplies = resolve;
      socket.write(command.repeat(times));
    });
  };
  if (password !== "") await send(["AUTH", username || "default", decodeURIComponent(password)], 1);
  if (pathname.length > 1) await send(["SELECT", pathname.slice(1)], 1);
  const key = `bench:${randomBytes(6).toString("hex")}`;
  return { take: (count) => send(["INCR", key], count), close: () => socket.destroy() };
}
