/**
 * `GET /v1/settings`: how this coordinator was started, for `callnumber doctor`. For operators alone: it tells paths and addresses of the
 * machine. What is secret was taken out before it came here.
 */
import { type Finding, OPERATOR_ROUTES, type SettingsAnswer } from "@callnumber/protocol/operator";
import { settingsAnswerSchema } from "@callnumber/protocol/operator-schemas";
import type { TypedApp } from "./app.js";
import { errorResponses } from "./error-responses.js";
import type { NodeServers } from "./node-servers.js";

/** What does not change while it runs. */
export type StartedWith = Pick<SettingsAnswer, "store" | "startedAtMs" | "settings" | "commands">;

export interface SettingsSources {
  readonly startedWith: StartedWith;
  readonly release: string;
  readonly servers: Pick<NodeServers, "material">;
  readonly coordinator: { readonly findings: () => Promise<readonly Finding[]> };
}

export function settingsRoute(app: TypedApp, { startedWith, release, servers, coordinator }: SettingsSources): void {
  app.get(
    OPERATOR_ROUTES.settings,
    {
      config: { access: "settings" },
      schema: {
        summary: "How the coordinator was started, without secrets",
        response: { 200: settingsAnswerSchema, ...errorResponses },
      },
    },
    async () => ({
      release,
      ...startedWith,
      certificateEndsAtMs: servers.material?.endsAtMs ?? null,
      findings: await coordinator.findings(),
    }),
  );
}
