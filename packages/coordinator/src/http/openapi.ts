/**
 * `/openapi.json`: OpenAPI 3.1, made of the routes, of the schemas and of their texts. Clients are generated from it, so it is the same for every
 * configuration: a route that is off is described, too.
 */
import { ERROR_RULES, type ErrorCode, ROUTES } from "@callnumber/protocol/api";
import { describedObjects, errorResponseSchema, jsonKeywords } from "@callnumber/protocol/schemas";
import type { FastifyContextConfig, FastifySchema } from "fastify";
import * as z from "zod";
import type { TypedApp } from "./app.js";
import { PERMISSIONS_OF, type Permission, ROLES } from "./auth.js";

/** What OpenAPI says of a route besides its path, its permission and its schemas. */
export interface Operation {
  readonly summary: string;
  readonly description?: string;
  /** The codes that it fails with, besides those of its permission, method and path. */
  readonly errors?: readonly ErrorCode[];
  /** Of the request, besides those of every route: what each is. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Of a success, besides the JSON of its schema: by media type, what it is. */
  readonly content?: Readonly<Record<string, string>>;
}

/** The part of a route that is described. */
export interface OperationParts {
  readonly config: FastifyContextConfig;
  readonly schema?: FastifySchema;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Missing: the route is not described. */
    readonly operation?: Operation;
    /** Of a route that is off: the one that is described. */
    readonly whenOn?: OperationParts;
  }
}

interface DescribedRoute {
  readonly method: string;
  readonly path: string;
  readonly permission: Permission;
  readonly operation: Operation;
  readonly schema: FastifySchema;
}

/** Returns a function that describes all routes. Call this before they are registered, and the function when they are. */
export function describeRoutes(app: TypedApp, release: string): () => object {
  const routes: DescribedRoute[] = [];
  app.addHook("onRoute", (route) => {
    const { config, schema = {} } = route.config?.whenOn ?? route;
    const { permission = "public", operation } = config ?? {};
    if (operation === undefined || route.method === "HEAD") return;
    routes.push({ method: route.method as string, path: route.url, permission, operation, schema });
  });
  return () => documentOf(routes, release);
}

function documentOf(routes: readonly DescribedRoute[], release: string): object {
  const schemas = componentSchemas();
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  // Their fields are parameters.
  for (const { schema } of routes) for (const part of [schema.params, schema.querystring]) delete schemas[idOf(part)];
  return {
    openapi: "3.1.0",
    info: {
      title: "Callnumber coordinator",
      description: "Leases runs: each holds 16,384 call numbers, and is leased once, ever.",
      version: release,
    },
    servers: [{ url: "/" }],
    paths,
    components: { schemas, securitySchemes: { token: { type: "http", scheme: "bearer", description: TOKEN } } },
  };
}

const TOKEN =
  "A token of `callnumber token create`, with the role that the operation names. Without `serve --tokens-file` none is needed.";

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** All objects of the API, by name. */
function componentSchemas(): Record<string, JsonSchema> {
  const uri = (id: string) => `#/components/schemas/${id}`;
  // As input: as output it would forbid the keys that later releases add to responses.
  const { schemas } = z.toJSONSchema(describedObjects, { io: "input", metadata: jsonKeywords, uri });
  for (const [id, json] of Object.entries(schemas)) {
    const { description, fields = {} } = describedObjects.get(describedObjects._idmap.get(id) as z.ZodType) ?? {};
    for (const [name, [, text]] of Object.entries(fields))
      Object.assign(json.properties?.[name] ?? {}, { description: text });
    Object.assign(json, { description, $schema: undefined, $id: undefined });
  }
  return schemas;
}

function operationOf(route: DescribedRoute, schemas: Readonly<Record<string, JsonSchema>>): object {
  const { permission, operation, schema } = route;
  const parametersIn = (place: string, part: unknown) => {
    const { properties = {}, required = [] } = schemas[idOf(part)] ?? {};
    return Object.entries(properties).map(([name, property]) => {
      const { description, ...ofValue } = property as JsonSchema;
      return { name, in: place, required: required.includes(name), description, schema: ofValue };
    });
  };
  const headers = Object.entries(operation.headers ?? {}).map(([name, description]) => {
    return { name, in: "header", description, schema: { type: "string" } };
  });
  const parameters = [...parametersIn("path", schema.params), ...parametersIn("query", schema.querystring), ...headers];
  const [[status, returned] = ["200", undefined]] = Object.entries(schema.response ?? {});
  const content: Record<string, object> = {};
  if (returned !== undefined) content["application/json"] = { schema: refTo(returned) };
  for (const [type, description] of Object.entries(operation.content ?? {}))
    content[type] = { schema: { type: type === "application/json" ? "object" : "string", description } };
  const { summary, description } = operation;
  return {
    operationId: Object.entries(ROUTES).find(([, path]) => path === route.path)?.[0],
    summary,
    ...(description && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(schema.body !== undefined && {
      requestBody: {
        required: !(schema.body as z.ZodType).safeParse({}).success,
        content: { "application/json": { schema: refTo(schema.body) } },
      },
    }),
    security: ROLES.filter((role) => permission !== "public" && PERMISSIONS_OF[role].has(permission)).map((role) => ({
      token: [role],
    })),
    responses: {
      [status]: { description: schemas[idOf(returned)]?.description ?? summary, content },
      ...errorResponses(route),
    },
  };
}

/** The name of the object that a schema describes, with rules about several of its fields or without. */
function idOf(schema: unknown): string {
  if (!(schema instanceof z.ZodType)) return "";
  return describedObjects.get(schema)?.id ?? idOf(schema._zod.parent);
}

function refTo(schema: unknown): { $ref: string } {
  return { $ref: `#/components/schemas/${idOf(schema)}` };
}

const OF_EVERY_REQUEST: readonly ErrorCode[] = [
  "invalid_request",
  "forbidden",
  "request_timed_out",
  "headers_too_large",
  "internal_error",
  "overloaded",
  "shutting_down",
];
const OF_THE_BODY: readonly ErrorCode[] = ["body_too_large", "unsupported_media_type"];
const NOT_OF_THE_STORE = new Set([...OF_EVERY_REQUEST, "too_many_streams", "lease_discarded", "run_ceiling_reached"]);
/** What may be wrong with a store, or with what a coordinator needs for it. */
export const OF_THE_STORE = (Object.keys(ERROR_RULES) as ErrorCode[]).filter(
  (code) => ERROR_RULES[code].httpStatus === 503 && !NOT_OF_THE_STORE.has(code),
);

/** By status, with the codes of each. */
function errorResponses({ method, path, permission, operation }: DescribedRoute): Record<string, object> {
  const codes = new Set<ErrorCode>([
    ...OF_EVERY_REQUEST,
    ...(permission === "public" ? [] : (["unauthorized"] as const)),
    ...(method === "POST" ? OF_THE_BODY : []),
    ...(path.startsWith("/v1/namespaces/:") ? (["namespace_not_found", ...OF_THE_STORE] as const) : []),
    ...(operation.errors ?? []),
  ]);
  const responses: Record<string, object> = {};
  for (const status of new Set([...codes].map((code) => ERROR_RULES[code].httpStatus))) {
    const ofStatus = [...codes].filter((code) => ERROR_RULES[code].httpStatus === status);
    const isLater = ofStatus.some((code) => ERROR_RULES[code].retry === "later");
    const code = { enum: ofStatus };
    responses[status] = {
      description: ofStatus.map((one) => `\`${one}\` (retry: ${ERROR_RULES[one].retry})`).join(", "),
      ...(isLater && { headers: { "Retry-After": RETRY_AFTER } }),
      content: { "application/json": { schema: { allOf: [refTo(errorResponseSchema)], properties: { code } } } },
    };
  }
  return responses;
}

const RETRY_AFTER = {
  description: "Of codes with `retry: later`: how long to wait at least",
  schema: { type: "integer", minimum: 0, "x-unit": "seconds" },
};
