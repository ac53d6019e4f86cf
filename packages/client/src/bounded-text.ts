/** The text of an answer, of which no more is taken than such an answer can have: whoever stands at an address may send without end. */

/**
 * The body of `response` as text; undefined, and the rest of it hung up on, when it has more than `bytesMax` bytes. What was compressed
 * counts as it is when it is unpacked. Rejects as the body does.
 */
export async function boundedText(response: Response, bytesMax: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  // Leaving the loop hangs up.
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > bytesMax) return undefined;
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}
