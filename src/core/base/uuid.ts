import type { RandomSource } from './clock.js';

/** A random UUID (RFC 9562, version 4). */
export function randomUuid(random: Pick<RandomSource, 'hex'>): string {
  const hex = random.hex(16);
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
