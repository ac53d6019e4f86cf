/**
 * URLs within the page: `#/main`, `#/main/runs?holder=x`, `#/main/runs/7`, `#/main/runs/1/65556`, `#/main/inspect/2VznWE2i`, `#/main/recovery`. Behind a `#`, so
 * that they work behind any path and need nothing of the server.
 */
import { DEFAULT_NAMESPACE, NAMESPACE_PATTERN } from "@callnumber/protocol/api";
import { useEffect, useState } from "preact/hooks";

const PAGES = ["overview", "runs", "inspect", "recovery"] as const;
export type PageName = (typeof PAGES)[number];

export interface Route {
  readonly namespace: string;
  readonly page: PageName;
  /** After the page: a run or a call number; empty for none. */
  readonly subject: string;
  readonly query: URLSearchParams;
}

function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [namespace = "", page = "", ...rest] = path.split("/").map(decoded);
  return {
    namespace: NAMESPACE_PATTERN.test(namespace) ? namespace : DEFAULT_NAMESPACE,
    page: PAGES.find((name) => name === page) ?? "overview",
    subject: rest.join("/"),
    query: new URLSearchParams(query),
  };
}

/** Page and subject default to the overview and none; empty values of the query are left out. */
export function urlOf(
  namespace: string,
  page: PageName = "overview",
  subject = "",
  query: Readonly<Record<string, string>> = {},
): string {
  const parts = [namespace, ...(page === "overview" ? [] : [page]), ...(subject === "" ? [] : subject.split("/"))];
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search && `?${search}`}`;
}

/** The present route; follows links, and the browser's back and forward. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return parseRoute(hash);
}

/** Goes there; with `isReplacing` the browser's back button skips the page that was left. */
export function go(url: string, isReplacing = false): void {
  if (!isReplacing) {
    location.hash = url;
    return;
  }
  history.replaceState(null, "", url);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
