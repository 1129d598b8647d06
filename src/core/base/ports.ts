/** The greatest port of TCP. */
export const MAX_PORT = 65_535;

/** Whether a value is the number of a port. */
export function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_PORT;
}
