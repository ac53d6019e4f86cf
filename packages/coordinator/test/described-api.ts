/** What `/openapi.json` says of the HTTP API, for tests. */
import { Coordinator } from "../src/coordinator.js";
import { createServer } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";

export interface Field {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly pattern?: string;
  readonly anyOf?: readonly Field[];
  readonly items?: Field;
  readonly properties?: Readonly<Record<string, Field>>;
  readonly required?: readonly string[];
  readonly "x-unit"?: string;
}

interface Response {
  readonly headers?: object;
  readonly content: Readonly<Record<string, { readonly schema: Field }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly { readonly name: string; readonly description: string; readonly schema: Field }[];
  readonly security: readonly { readonly token: readonly string[] }[];
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Field>> };
}

const { paths, components } = await document();

/** The objects of the API by name. */
export const { schemas } = components;
export const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => {
    const codes = Object.values(operation.responses).flatMap(
      ({ content }) => (content["application/json"]?.schema.properties?.["code"]?.enum ?? []) as readonly string[],
    );
    const pattern = new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);
    return Object.assign(operation, { method: method.toUpperCase(), path, pattern, codes });
  }),
);

/** Returns the codes that a request may fail with; undefined where no operation is described. */
export function describedCodes(method: string, path: string): readonly string[] | undefined {
  const [plain = ""] = path.split("?", 1);
  return operations.find((one) => one.method === method && one.pattern.test(plain))?.codes;
}

async function document(): Promise<Document> {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "test" });
  const server = createServer({ coordinator, release: "1.2.3" });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  try {
    return (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  } finally {
    await server.stop();
  }
}
