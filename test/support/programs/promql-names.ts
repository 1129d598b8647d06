/** What looks like a metric's name in PromQL, and is none. */
const WORDS = new Set(
  'and or unless by without on ignoring group_left group_right offset bool atan2 inf nan start end'.split(
    ' ',
  ),
);

/**
 * The names of the metrics that a PromQL expression asks for. Grafana's own variables must have been
 * replaced. Source of the grammar: https://prometheus.io/docs/prometheus/latest/querying/basics/
 */
export function promqlNames(expression: string): string[] {
  const bare = expression
    .replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/g, '""')
    .replace(/#.*$/gm, '')
    .replace(/\{[^}]*\}/g, ' ')
    .replace(/\[[^\]]*\]/g, ' ')
    // Labels, which look like names.
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/gi, ' ');
  const names = new Set<string>();
  for (const [name] of bare.matchAll(/(?<![\w:.])[a-zA-Z_:][\w:]*(?!\w)(?!\s*\()/g)) {
    if (!WORDS.has(name.toLowerCase())) names.add(name);
  }
  return [...names];
}
