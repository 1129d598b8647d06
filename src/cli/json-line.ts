/**
 * A value as one line of JSON that is safe to show: what a terminal could take for a command, or hide, is escaped, also where JSON would
 * let it stand, as the control characters of Unicode above those of ASCII. Whoever parses it gets the very same value.
 */
export function jsonLine(value: unknown): string {
  const escaped = (text: string) =>
    text
      .split('')
      .map((unit) => `\\u${hex(unit.charCodeAt(0))}`)
      .join('');
  return `${JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped)}\n`;
}

function hex(unit: number): string {
  return unit.toString(16).padStart(4, '0');
}
