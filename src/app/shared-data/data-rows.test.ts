import { describe, expect, it } from 'vitest';
import { runInProcess } from '../../../test/support/in-process.js';

describe('the commands of nodelease data', () => {
  it.each<[string[], RegExp]>([
    [
      ['set', 'n', '3000000000', '--type', 'Integer'],
      /value: expected the text of a value of the type Integer, got "3000000000"/,
    ],
    [['get', ''], /name: expected a text of at least one character, got ""/],
    [['add', 'n', '1', '--kind', 'map'], /--kind: expected set or list, got "map"/],
    [['ls', '--root', 'monastery'], /--root: expected an absolute path .*/],
    [['set', 'n', '1', '--type', 'Int'], /--type: expected one of String, .*, got "Int"/],
  ])('refuse what is wrong in one line, before they connect: %j', async (args, complaint) => {
    // No server is there, and none is asked.
    const { code, answer, complaints } = await runInProcess(['data', ...args, '--zookeeper', '127.0.0.1:1']);
    expect({ code, answer }).toEqual({ code: 64, answer: '' });
    expect(complaints).toMatch(new RegExp(`^nodelease: ${complaint.source} \\[[A-Z_]+\\]\n$`));
  });
});
