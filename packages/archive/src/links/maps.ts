/** Maps of old links for web servers. Each redirects with 308, respects letter case, and ignores a slash at the end. */
import { decodedPath, escaped, type Link } from "./old-links.js";

export const MAP_KINDS = ["list", "nginx", "apache", "json"] as const;
export type MapKind = (typeof MAP_KINDS)[number];

/**
 * Yields a map in pieces, with a character for each byte. `targetOf` returns where a call number is read; `onLeftOut` gets a line for each
 * link that a map can't have.
 */
export function* mapOf(
  kind: MapKind,
  links: Iterable<Link>,
  targetOf: (callNumber: string) => string,
  onLeftOut: (line: string) => void,
): Generator<string, void> {
  if (kind === "nginx") return yield* nginxMap(links, targetOf, onLeftOut);
  if (kind === "apache") yield APACHE_HEAD;
  let separator = "{\n";
  for (const { url, callNumber } of links) {
    if (kind === "list") yield `${url} ${callNumber}\n`;
    else if (kind === "apache") yield `${apacheKey(url)} ${targetOf(callNumber)}\n`;
    else yield `${separator}${JSON.stringify(url)}: ${JSON.stringify(targetOf(callNumber))}`;
    separator = ",\n";
  }
  if (kind === "json") yield separator === ",\n" ? "\n}\n" : "{}\n";
}

const APACHE_HEAD = `# Old links of a mail archive, for Apache 2.4. Put this into the virtual host, without the #:
#   AllowEncodedSlashes On
#   RewriteEngine On
#   RewriteMap callnumber-links "txt:/etc/apache2/old-links.txt"
#   RewriteMap callnumber-escape int:escape
#   RewriteCond %{REQUEST_URI} ^(.+?)/?$
#   RewriteCond \${callnumber-links:\${callnumber-escape:%1}?%{QUERY_STRING}} ^(.+)$
#   RewriteRule ^ %1 [R=308,L,NE,QSD]
#   RewriteCond %{REQUEST_URI} ^(.+?)/?$
#   RewriteCond \${callnumber-links:\${callnumber-escape:%1}} ^(.+)$
#   RewriteRule ^ %1 [R=308,L,NE,QSD]
# Apache reads all of this text for each URL that is not in it. Make a DBM file of more than 5,000 links, and write dbm: for txt:
#   httxt2dbm -i old-links.txt -o old-links.dbm
`;
/** What Apache's own map `escape` leaves as it is. */
const ESCAPED_BY_APACHE = /[^A-Za-z0-9$\-_.+!*'(),:;@&=/~]/g;

function apacheKey(url: string): string {
  const [path = "", query = ""] = url.split(/(\?.*)/);
  return escaped(decodedPath(path), ESCAPED_BY_APACHE).replace(/%../g, (escape) => escape.toLowerCase()) + query;
}

/** nginx reads 4,096 bytes of a word at most. */
const NGINX_WORD_BYTES_MAX = 4000;

/**
 * nginx finds a key in constant time, but ignores its case. So the value of a key has each URL that differs from it by case only, with its
 * number, and one regular expression takes the number behind the URL that was asked for.
 */
function* nginxMap(
  links: Iterable<Link>,
  targetOf: (callNumber: string) => string,
  onLeftOut: (line: string) => void,
): Generator<string, void> {
  const [paths, queries] = [new Map<string, string>(), new Map<string, string>()];
  for (const { url, callNumber } of links) {
    const [path = "", query] = url.split(/(\?.*)/);
    const entries = query === undefined ? paths : queries;
    const quoted = (decodedPath(path) + (query ?? "")).replace(/["\\]/g, "\\$&");
    const key = quoted.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
    const value = `${entries.get(key) ?? ""}${quoted.replaceAll("$", "${callnumber_dollar}")}\\t${callNumber}\\t`;
    if (value.length <= NGINX_WORD_BYTES_MAX) entries.set(key, value);
    else onLeftOut(`left out: ${url} of ${callNumber}, because its line would be too long for nginx`);
  }
  const keys = [...paths.keys(), ...queries.keys()];
  const longest = keys.reduce((length, key) => Math.max(length, key.length), 256);
  yield `# Old links of a mail archive. Include this file in http { }, and put this into each server { } that had them:
#   if ($callnumber_old_link) { return 308 $callnumber_old_link; }
# If you have the next two settings elsewhere, keep the greater value of each.
map_hash_max_size ${Math.max(2048, 2 * keys.length)};
map_hash_bucket_size ${2 ** Math.ceil(Math.log2(2 * longest))};
# A value can't have a dollar sign of its own.
geo $callnumber_dollar { default "$"; }
map $uri $callnumber_path { default $uri; "~^(?<callnumber_stripped>.+)/$" $callnumber_stripped; }
`;
  yield* nginxBlock(paths, "$callnumber_path", "$callnumber_path_link", '""', targetOf);
  yield* nginxBlock(
    queries,
    "$callnumber_path$is_args$args",
    "$callnumber_old_link",
    "$callnumber_path_link",
    targetOf,
  );
}

function* nginxBlock(
  entries: ReadonlyMap<string, string>,
  source: string,
  name: string,
  otherwise: string,
  targetOf: (callNumber: string) => string,
): Generator<string, void> {
  yield `map "${source}" ${name}_all {\n`;
  for (const [key, value] of entries) yield `"${key}" "${value}";\n`;
  yield `}\nmap "${source}\\t${name}_all" ${name} {\ndefault ${otherwise};\n`;
  const found = '"~^([^\\t]+)\\t(?:.*\\t)?\\1\\t(?<callnumber_found>[0-9A-Za-z]{8})\\t"';
  yield `${found} "${targetOf("$callnumber_found")}";\n}\n`;
}
