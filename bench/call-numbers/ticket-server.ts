/**
 * A counter in Redis that is asked for each number, over a plain socket. Not through a Redis client: ioredis brings a class that
 * extends String, and from then on everything in the process that cuts or reads a text takes several times as long (Node 20).
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export class TicketServer {
  readonly #socket: Socket;
  readonly #key = `bench:${randomBytes(6).toString("hex")}`;
  #unread = "";
  #replies: string[] = [];
  #expectedCount = 0;
  #onReplies: (numbers: readonly string[]) => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text) => this.#read(String(text)));
  }

  /** `url`: `redis://[user][:password]@host:port[/database]`. */
  static async open(url: string): Promise<TicketServer> {
    const { hostname, port, username, password, pathname } = new URL(url);
    const socket = connect(Number(port || 6379), hostname);
    await once(socket, "connect");
    const server = new TicketServer(socket);
    if (password !== "") await server.#send(["AUTH", username || "default", decodeURIComponent(password)], 1);
    if (pathname.length > 1) await server.#send(["SELECT", pathname.slice(1)], 1);
    return server;
  }

  /** Takes so many numbers, with one write. */
  async take(count: number): Promise<readonly string[]> {
    return await this.#send(["INCR", this.#key], count);
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(args: readonly string[], times: number): Promise<readonly string[]> {
    const command = `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`;
    this.#expectedCount = times;
    this.#replies = [];
    return new Promise((resolve) => {
      this.#onReplies = resolve;
      this.#socket.write(command.repeat(times));
    });
  }

  #read(text: string): void {
    const lines = (this.#unread + text).split("\r\n");
    this.#unread = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("-")) throw new Error(`Redis returned an error: ${line}`);
      this.#replies.push(line.slice(1));
    }
    if (this.#replies.length === this.#expectedCount) this.#onReplies(this.#replies);
  }
}
