/** The manifests for Kubernetes: of known fields alone, and of options, routes, paths and users that program and image have. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { ROUTES } from "@callnumber/protocol/api";
import { expect, test } from "vitest";
import { parseAllDocuments, parseDocument } from "yaml";
import { DRAIN_TIMEOUT_MS } from "../../packages/coordinator/src/http/node-servers.js";
import { callnumber, folderForTest, REPOSITORY, serveWith } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string };
}

interface Container {
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly startupProbe: Probe;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly subPath?: string }[];
}

interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
  readonly volumes: readonly {
    readonly name: string;
    readonly secret?: { readonly secretName: string; readonly defaultMode: number };
    readonly configMap?: { readonly name: string };
    readonly persistentVolumeClaim?: { readonly claimName: string };
  }[];
}

interface StatefulSet {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly serviceName: string;
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly metadata: { readonly labels: object }; readonly spec: PodSpec };
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
  };
}

interface Service {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly selector: object; readonly ports: readonly { port: number; targetPort: string }[] };
}

const read = (...path: string[]) => readFileSync(join(REPOSITORY, ...path), "utf8");
const dockerfile = read("Dockerfile");
const page = read("docs", "how-to", "run-in-containers.md");

/** Kubernetes reads YAML 1.1, in which 0440 is octal. */
const documents = ["callnumber.yaml", "operator.yaml"].flatMap((name) =>
  parseAllDocuments(read("deploy", "kubernetes", name), { version: "1.1" }).map((document) => {
    if ("errors" in document) expect([...document.errors, ...document.warnings], name).toEqual([]);
    return document.toJS() as { readonly kind: string };
  }),
);
const [service, podsService, coordinators, operatorPod] = documents as unknown as [
  Service,
  Service,
  StatefulSet,
  { readonly metadata: { readonly name: string }; readonly spec: PodSpec },
];
const coordinatorPod = coordinators.spec.template.spec;
const PODS: readonly (readonly [string, PodSpec])[] = [
  ["a coordinator", coordinatorPod],
  ["the operator", operatorPod.spec],
];
const [coordinator] = coordinatorPod.containers;
const probes = [coordinator.livenessProbe, coordinator.readinessProbe, coordinator.startupProbe];

const envOf = ({ env }: Container) => new Map(env.map(({ name, value }) => [name, value]));
const settingsOf = (container: Container) =>
  [...envOf(container).keys()].filter((name) => name.startsWith("CALLNUMBER_"));
const pathOfMount = ({ volumeMounts }: Container, volume: string) =>
  volumeMounts.find(({ name }) => name === volume)?.mountPath;
const helpOf = async (...command: string[]) => (await callnumber([...command, "--help"])).stdout;

/** kubectl's own types, without a cluster: it drops a field that it does not know, and rejects a value of a wrong type. */
test.skipIf(spawnSync("kubectl", ["version", "--client"]).status !== 0)("kubectl knows each field", () => {
  expect(documents.map(({ kind }) => kind)).toEqual(["Service", "Service", "StatefulSet", "Pod"]);
  for (const document of documents) {
    const change = document.kind === "Service" ? ["selector", "changed=yes"] : ["image", "*=changed"];
    const [kind = "", value = ""] = change;
    const words = ["set", kind, value, "--local", "--filename", "-", "--output", "json"];
    const { status, stdout, stderr } = spawnSync("kubectl", words, {
      encoding: "utf8",
      input: JSON.stringify(document),
    });
    expect(status, stderr).toBe(0);
    const unchanged = JSON.parse(JSON.stringify(document), (name, given: unknown) =>
      name === "image" ? "changed" : name === "selector" && document.kind === "Service" ? { changed: "yes" } : given,
    ) as object;
    expect(JSON.parse(stdout)).toMatchObject(unchanged);
  }
});

test.each(PODS)("the pod of %s runs as the image's user, without other rights", (_, pod) => {
  expect(dockerfile).toMatch(/^FROM node:.*-slim$/m);
  expect(dockerfile).toMatch(/^USER node$/m);
  // Of `node` in the official image.
  const user = { runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 };
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { ...user, seccompProfile: { type: "RuntimeDefault" } },
    containers: [
      {
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        },
      },
    ],
  });
  expect(JSON.stringify(pod)).not.toMatch(/privileged|hostPath|hostNetwork|hostPID/);
});

test.each(PODS)("the pod of %s mounts the volumes that it names, secrets whole and for its group alone", (_, pod) => {
  const [{ volumeMounts }] = pod.containers;
  const ofClaims = pod === coordinatorPod ? coordinators.spec.volumeClaimTemplates.map(({ metadata }) => metadata) : [];
  expect(volumeMounts.map(({ name }) => name)).toEqual([...ofClaims, ...pod.volumes].map(({ name }) => name));
  expect(volumeMounts.filter(({ subPath }) => subPath !== undefined)).toEqual([]);
  const modes = pod.volumes.flatMap(({ secret }) => secret?.defaultMode ?? []);
  expect(new Set(modes)).toEqual(new Set([0o440]));
});

test.each(PODS)("the pod of %s has no secret in its manifest", (_, pod) => {
  const [{ env, args, command }] = pod.containers;
  const inText = JSON.stringify([args, command, env.map(({ value }) => value)]);
  expect(inText).not.toMatch(/cn_|redis:|rediss:|postgres:|password/i);
  for (const { name, value } of env) if (/TOKEN|STORE|PASSWORD/.test(name)) expect(value ?? "/").toMatch(/^\//);
});

test("the operator has the checkpoints of the first coordinator, at the same path", () => {
  const [{ metadata }] = coordinators.spec.volumeClaimTemplates as [{ metadata: { name: string } }];
  const [claim] = operatorPod.spec.volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim ?? []);
  expect(claim).toEqual({ claimName: `${metadata.name}-${coordinators.metadata.name}-0` });
  const [, directory = ""] = /CALLNUMBER_CHECKPOINT_DIR=(\S+)/.exec(dockerfile) ?? [];
  for (const [, { containers }] of PODS) {
    expect(pathOfMount(containers[0], "checkpoint")).toBe(directory);
    expect(envOf(containers[0]).get("CALLNUMBER_CHECKPOINT_DIR")).toBe(directory);
  }
});

test("the services lead to the port of the image, the one for operators also where nothing leases", () => {
  const [, port] = /^EXPOSE (\d+)$/m.exec(dockerfile) ?? [];
  expect(coordinator.ports).toEqual([{ name: "https", containerPort: Number(port) }]);
  expect(envOf(coordinator).get("CALLNUMBER_PORT")).toBe(port);
  expect(envOf(coordinator).get("CALLNUMBER_HOST")).toBe("0.0.0.0");
  const { selector, template, serviceName } = coordinators.spec;
  expect(template.metadata.labels).toEqual(selector.matchLabels);
  for (const { spec } of [service, podsService]) {
    expect(spec.ports).toMatchObject([{ port: Number(port), targetPort: "https" }]);
    expect(spec.selector).toEqual(selector.matchLabels);
  }
  expect(podsService).toMatchObject({
    metadata: { name: serviceName },
    spec: { clusterIP: "None", publishNotReadyAddresses: true },
  });
  const url = envOf(operatorPod.spec.containers[0]).get("CALLNUMBER_COORDINATOR");
  expect(url).toBe(`https://${serviceName}:${port}`);
  // The certificate that the page makes is for both.
  for (const { metadata } of [service, podsService]) expect(page).toMatch(new RegExp(`DNS:${metadata.name}[, ]`));
});

test("each option and each variable is one of the commands", async () => {
  const [name = "", ...words] = coordinator.args ?? [];
  const help = await helpOf(name);
  for (const option of words.filter((word) => word.startsWith("--"))) expect(help).toContain(`${option} <`);
  for (const setting of settingsOf(coordinator)) expect(help).toContain(setting);
  const ofOperator = await Promise.all(["init", "status", "doctor", "recover"].map((command) => helpOf(command)));
  for (const setting of settingsOf(operatorPod.spec.containers[0])) {
    expect(ofOperator.join("").replace(/\s+/g, " "), setting).toContain(`env: ${setting})`);
  }
});

test("a coordinator starts with the manifest's settings, and answers its probes", async () => {
  const folder = await folderForTest();
  const inFolder = (path: string) => join(folder, path);
  for (const { mountPath } of coordinator.volumeMounts)
    mkdirSync(inFolder(mountPath), { recursive: true, mode: 0o770 });
  const env = Object.fromEntries(
    [...envOf(coordinator)].map(([name, value = ""]) => [name, value.replace(/^\//, `${folder}/`)]),
  );
  const { CALLNUMBER_TOKENS_FILE: tokens = "", CALLNUMBER_TLS_KEY: key = "" } = env;
  const create = ["token", "create", "--role", "lease", "--namespace", "main"];
  expect(await callnumber(create, { env: { CALLNUMBER_TOKENS_FILE: tokens } })).toMatchObject({ code: 0 });
  writeTlsFiles(inFolder("/etc/callnumber/tls"), newAuthority().issue(), "tls");
  for (const file of [tokens, key]) chmodSync(file, 0o440);
  const { url } = await serveWith(env, "memory:", "--host", "127.0.0.1");
  expect(probes.map(({ httpGet }) => httpGet.path)).toEqual([ROUTES.health, ROUTES.readiness, ROUTES.health]);
  for (const { httpGet } of probes) {
    expect(httpGet).toMatchObject({ port: "https", scheme: "HTTPS" });
    expect(await statusOf(`${url}${httpGet.path}`)).toBe(200);
  }
});

/** As a kubelet does: it believes any certificate. */
function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { rejectUnauthorized: false, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject);
  });
}

test("what the comments give as a reason is so", async () => {
  expect(coordinatorPod).toMatchObject({ enableServiceLinks: false });
  const links = await callnumber(["serve"], { env: { CALLNUMBER_PORT: "tcp://10.0.0.1:7300" } });
  expect(links).toMatchObject({ code: 2, stderr: expect.stringContaining("CALLNUMBER_PORT") });
  const [, store] = /^ +CALLNUMBER_STORE=(\S+)/m.exec(dockerfile) ?? [];
  const both = await callnumber(["serve"], { env: { CALLNUMBER_STORE: store, CALLNUMBER_STORE_FILE: "/etc/url" } });
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("--store-file") });
  expect(coordinatorPod.terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(2 * DRAIN_TIMEOUT_MS);
});

test("the page makes each secret and each map that a pod needs, and runs the image's own command", () => {
  for (const [, { volumes }] of PODS) {
    for (const { secret, configMap } of volumes) {
      if (secret !== undefined) expect(page).toMatch(new RegExp(`kubectl create secret \\w+ ${secret.secretName} `));
      if (configMap !== undefined) expect(page).toContain(`kubectl create configmap ${configMap.name} `);
    }
  }
  const [, ...words] = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1] ?? "[]") as string[];
  const inPods = [...page.matchAll(/kubectl exec \S+ -- (.*)$/gm)].map(([, line]) => line as string);
  expect(inPods.length).toBeGreaterThan(3);
  for (const line of inPods)
    expect(line).toMatch(new RegExp(`^node ${words.join(" ")} (?:init|status|doctor|recover)`));
});

test("the page names only services of the compose file, and each with its profile", () => {
  const { services } = parseDocument(read("docker-compose.yml"), { merge: true }).toJS() as {
    readonly services: Readonly<Record<string, { readonly profiles?: readonly string[] }>>;
  };
  const named = [...page.matchAll(/^docker compose (?:--profile (\w+) )?(run|exec|up) (.*)$/gm)].flatMap(
    ([line, profile, verb, rest = ""]) => {
      // Neither a flag, nor the variable behind `-e`.
      const name = rest.split(" ").find((word) => /^[a-z]/.test(word));
      return name === undefined ? [] : [{ line, profile, verb, name }];
    },
  );
  expect(named.length).toBeGreaterThan(5);
  for (const { line, profile, verb, name } of named) {
    expect(services, line).toHaveProperty(name);
    const { profiles } = services[name] ?? {};
    if (verb !== "exec" && profiles !== undefined) expect(profiles, line).toContain(profile);
  }
});
