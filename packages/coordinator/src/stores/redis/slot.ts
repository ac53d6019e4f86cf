/** The slot of a key in a Redis Cluster, as the Cluster specification computes it. */

const SLOT_COUNT = 16_384;
const CRC16_POLYNOMIAL = 0x1021;

/** Of the text between the first brace and the next closing one, when there is any; else of the whole key. */
export function slotOf(key: string): number {
  const opening = key.indexOf("{");
  const closing = key.indexOf("}", opening + 1);
  const hashed = opening >= 0 && closing > opening + 1 ? key.slice(opening + 1, closing) : key;
  return crc16(Buffer.from(hashed)) % SLOT_COUNT;
}

/** CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ CRC16_POLYNOMIAL;
    }
    crc &= 0xffff;
  }
  return crc;
}
