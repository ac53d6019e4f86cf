/** Files that must be converted before they can be imported, by what they begin with, in hex. The README has the commands. */
const hex = (text: string) => Buffer.from(text, "latin1").toString("hex");

const FORMATS: readonly (readonly [begin: RegExp, reason: string])[] = [
  [/^1f8b/, "it is compressed by gzip: add .gz to its name, and it is read as it is"],
  // `BZh` and a digit: a text may begin with the letters alone.
  [/^425a683[1-9]/, "it is compressed by bzip2: unpack it with bunzip2 first"],
  [/^fd377a585a00/, "it is compressed by xz: unpack it with unxz first"],
  [/^28b52ffd/, "it is compressed by zstd: unpack it with unzstd first"],
  [/^504b0304/, "it is a zip archive: unpack it with unzip first"],
  [new RegExp(`^.{514}${hex("ustar")}`), "it is a tar archive: unpack it with tar first"],
  [/^(?:fffe|feff)/, "it is UTF-16: convert it to UTF-8 first"],
  [/^01010101(?:0d)?0a/, "it is MMDF: make an mbox of it with awk first, as the README shows"],
  [
    new RegExp(`^${hex("BABYL OPTIONS:")}`),
    "it is Babyl, of Emacs Rmail: make an mbox of it with unrmail of Emacs first",
  ],
  [
    new RegExp(`^${hex("#! rnews ")}`),
    "it is a news batch of rnews: make an mbox of it with sed first, as the README shows",
  ],
  // A number of bytes, alone on its line, and the letter of a field.
  [
    /^(?:3\d)+(?:20)*(?:0d)?0a[4-7]/,
    "it is .emlx of Apple Mail: cut the message out with tail and head first, as the README shows",
  ],
];
const BEGIN_BYTES = 300;

/** Returns what a file that begins with these bytes is instead of an mbox, and how it is converted; undefined for an mbox. */
export function foreignFormat(bytes: Buffer): string | undefined {
  const begin = bytes.toString("hex", 0, BEGIN_BYTES);
  return FORMATS.find(([form]) => form.test(begin))?.[1];
}
