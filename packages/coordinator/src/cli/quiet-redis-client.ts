/** The Redis client logs every command that it sends for whoever sets DEBUG, the log-in with its password among them: not here. */

/** What the client's own word for itself is, with a minus: of those that are named, this one is left out, whatever `*` says. */
const WITHOUT_CLIENT = "-ioredis:*";

/** Before the client is loaded: it reads the variable once. */
export function silenceRedisClient(environment: NodeJS.ProcessEnv): void {
  const named = environment["DEBUG"];
  if (named !== undefined) environment["DEBUG"] = `${named},${WITHOUT_CLIENT}`;
}
