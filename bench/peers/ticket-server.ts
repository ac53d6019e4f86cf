/**
 * A counter in Redis that is asked for each number, over a plain socket. Not through a Redis client: ours brings a class that extends
 * String, and from then on everything in the process that cuts or reads a text takes two to five times as long (Node 20).
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export class TicketServer {
  readonly #socket: Socket;
  readonly #key = `bench:${randomBytes(6).toString("hex")}`;
  #unread = "";
  #told: string[] = [];
  #wanted = 0;
  #answer: (numbers: readonly string[]) => void = () => {};

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
    if (password !== "") await server.#ask(["AUTH", username || "default", decodeURIComponent(password)], 1);
    if (pathname.length > 1) await server.#ask(["SELECT", pathname.slice(1)], 1);
    return server;
  }

  /** So many tickets, asked for in one write. */
  async take(count: number): Promise<readonly string[]> {
    return await this.#ask(["INCR", this.#key], count);
  }

  close(): void {
    this.#socket.destroy();
  }

  #ask(words: readonly string[], times: number): Promise<readonly string[]> {
    const command = `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
    this.#wanted = times;
    this.#told = [];
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#socket.write(command.repeat(times));
    });
  }

  #read(text: string): void {
    const lines = (this.#unread + text).split("\r\n");
    this.#unread = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("-")) throw new Error(`Redis refused: ${line}`);
      this.#told.push(line.slice(1));
    }
    if (this.#told.length === this.#wanted) this.#answer(this.#told);
  }
}
