import { afterEach, describe, expect, it, vi } from 'vitest';
import { runInProcess } from '../../../test/support/in-process.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('the commands of nodelease config', () => {
  it.each([
    ['ls', 'expected --app NAME'],
    ['ls --app a/b', 'app: expected a name without'],
    ['ls --app shop --profile a,b', 'profile: expected a name without'],
    ['set --app shop novalue', 'KEY=VALUE: expected a key, "=", and its value, got "novalue"'],
    ['set --app shop a=1 --nodes 3-1', '--nodes: expected a node id or a range of them'],
    ['unset --app shop', 'expected the keys to unset'],
    ['diff x --app shop', 'REV: expected a whole number'],
    ['export --app shop --format yaml', '--format: expected one of properties, json, env, got "yaml"'],
    ['ls --app shop --root config', 'root: expected an absolute path'],
  ])('say in one line what is wrong with a call, before they connect: %s', async (command, complaint) => {
    // No server is there, and none is asked.
    const env = { NODELEASE_ZOOKEEPER: '127.0.0.1:1' };
    const { code, answer, complaints } = await runInProcess(['config', ...command.split(' ')], { env });
    expect({ code, answer }).toEqual({ code: 64, answer: '' });
    expect(complaints).toMatch(/^nodelease: .*\n$/);
    expect(complaints).toContain(complaint);
  });
});
