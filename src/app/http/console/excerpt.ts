/** How much of a text a page shows, in characters. */
export const MAX_TEXT = 2_000;

/** A copy of the beginning, where it is long: a substring keeps the whole text in memory. */
export function excerpt(text: string): string {
  return text.length > MAX_TEXT ? `${Buffer.from(text.slice(0, MAX_TEXT - 1))}…` : text;
}
