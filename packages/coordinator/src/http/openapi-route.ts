/** `GET /openapi.json`: what there is to ask, for programs. Made once: strangers may ask for it, and making it takes milliseconds. */
import { ROUTES } from "@callnumber/protocol/wire";
import type { TypedApp } from "./app.js";

/** Tells of the routes that are there when it is asked for first: of all of them, as none is added while the server listens. */
export function openApiRoute(app: TypedApp): void {
  let text: string | undefined;
  app.get(ROUTES.openApi, { config: { access: "public" }, schema: { hide: true } }, async (_request, reply) => {
    text ??= JSON.stringify(app.swagger());
    reply.type("application/json; charset=utf-8");
    return await reply.send(text as never);
  });
}
