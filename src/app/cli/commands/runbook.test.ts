import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../../../test/support/package-root.js';
import { COMMANDS } from './commands.js';

const text = (path: string) => readFileSync(join(packageRoot, path), 'utf8');
const runbook = text('docs/operate/runbook.md');

/** The sections of the runbook, by their headings. */
const sections = new Map(
  runbook
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [heading = '', ...lines] = section.split('\n');
      return [heading, lines.join('\n')] as const;
    }),
);

/** The commands that a section shows, without `$ `. */
const commandsIn = (section: string) =>
  [...section.matchAll(/^```console.*\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    [...block.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command),
  );

/** The alerts, each with the address of its section. */
const alerts = [
  ...text('infra/prometheus/alerts.yml').matchAll(
    /^ {6}- alert: (\w+)\n(?:(?! {6}- alert:).*\n)*? {10}runbook_url: (\S+)$/gm,
  ),
].map(([, name = '', url = '']) => [name, url] as const);

/** What a call of nodelease names that does not exist: the command, or its options. */
function unknownIn(call: string): string[] {
  const words = call.split(' ').slice(1);
  const row = COMMANDS.find(({ name }) => words.slice(0, name.split(' ').length).join(' ') === name);
  if (row === undefined) return [call];
  const known = new Set([
    ...row.settings.map((setting) => `--${setting}`),
    ...(row.options ?? []).map(([flags]) => /--[\w-]+/.exec(flags)?.[0]),
  ]);
  return words.filter((word) => word.startsWith('--') && !known.has(word));
}

describe('the runbook', () => {
  it('has a section for each alert, which names it by its runbook_url', () => {
    const all = [...text('infra/prometheus/alerts.yml').matchAll(/^ {6}- alert: (\w+)$/gm)];
    expect(alerts.map(([name]) => name)).toEqual(all.map(([, name]) => name));
    expect(alerts.length).toBeGreaterThan(5);
    for (const [name, url] of alerts) {
      expect(url).toBe(`docs/operate/runbook.md#${name.toLowerCase()}`);
      expect([...sections.keys()]).toContain(name);
    }
  });

  it.each([...sections])(
    'says under %s what to run, in one to three commands, and what to decide',
    (_, section) => {
      const commands = commandsIn(section);
      expect(commands.length).toBeGreaterThanOrEqual(1);
      expect(commands.length).toBeLessThanOrEqual(3);
      expect(commands.filter((command) => !/^(nodelease|aws) /.test(command))).toEqual([]);
      const calls = commands.filter((command) => command.startsWith('nodelease '));
      expect(calls.flatMap(unknownIn)).toEqual([]);
      expect(section).toMatch(/^\* |\]\(#/m);
    },
  );

  it('would not pass a command or an option that does not exist', () => {
    expect(unknownIn('nodelease stats')).toEqual(['nodelease stats']);
    expect(unknownIn('nodelease status --jason')).toEqual(['--jason']);
    expect(unknownIn('nodelease discovery ls --json')).toEqual([]);
  });
});
