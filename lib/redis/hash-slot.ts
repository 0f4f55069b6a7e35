import { hashTag } from './names';

const SLOTS = 16_384;

/** x^16 + x^12 + x^5 + 1, without its first term. */
const POLYNOMIAL = 0x1021;

/** The slot of a key on a Redis Cluster: the CRC-16/XMODEM of its hash tag, or of all of it. */
export function hashSlot(key: string): number {
  let remainder = 0;
  for (const byte of Buffer.from(hashTag(key) ?? key)) {
    remainder ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      remainder = remainder & 0x8000 ? (remainder << 1) ^ POLYNOMIAL : remainder << 1;
    }
    remainder &= 0xffff;
  }
  return remainder % SLOTS;
}
