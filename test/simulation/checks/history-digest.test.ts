import { describe, expect, it } from 'vitest';
import { digest } from './history-digest.js';

/** As `World.note` writes a line. */
const line = (seconds: number, who: string, what: string) =>
  `${seconds.toFixed(3).padStart(9)} s  ${who.padEnd(10)} ${what}`;

const acquired = [
  line(1, 'task 3.1', 'starts (run)'),
  line(1, 'task 3.1', '#1 read cluster.json'),
  line(1.1, 'task 3.1', 'setting-overruled'),
  line(1.1, 'task 3.1', '#2 list '),
  line(1.2, 'task 3.1', '#3 replace 2.json'),
  line(1.3, 'store', '2.json is now held by task-3-1, version 4'),
  line(1.4, 'task 3.1', 'acquired node id 2 version 4 (released)'),
];
const renewed = [
  line(6, 'task 3.1', '#4 replace 2.json'),
  line(6.1, 'store', '2.json is now held by task-3-1, version 4'),
  line(6.2, 'task 3.1', 'renewed'),
];

describe('the digest of a history', () => {
  it('leaves out reads, listings, overruled settings and renewals, and says how many lines', () => {
    const { lines, left } = digest([...acquired, ...renewed], 'node id 7: somebody');
    expect(lines).toEqual([acquired[0], acquired[4], acquired[5], acquired[6]]);
    expect(left).toBe(6);
  });

  it.each([
    'node id 2: task 3.1 and task 4.1 at once',
    '2.json is missing',
    'task 3.1 gives up 2 version 4 (…)',
  ])('keeps the renewals of what is violated: %s', (about) => {
    expect(digest([...acquired, ...renewed], about).lines).toEqual(expect.arrayContaining(renewed));
  });

  it('keeps requests that something befell, with it, and what came of them', () => {
    const fault = line(6, '', 'task 3.1 #4 replace 2.json: response-lost');
    const history = [...acquired, renewed[0] as string, fault, ...renewed.slice(1)];
    expect(digest(history, 'node id 7').lines).toEqual(
      expect.arrayContaining([renewed[0], fault, renewed[2]]),
    );
    const list = [line(7, 'task 3.1', '#5 list '), line(7, '', 'task 3.1 #5 list : slow')];
    expect(digest(list, 'node id 7').lines).toEqual(list);
  });

  it('keeps unique ids only of what is violated, and distinguishes renewals from other writes at the same time', () => {
    const made = line(6.05, 'task 3.1', 'makes 12 ids of node id 2 (8 bits), stamped 6.000 … 6.001 s');
    const history = [...acquired, renewed[0] as string, made, ...renewed.slice(1)];
    expect(digest(history, 'node id 2: task 3.1 stamps an id').lines).toContain(made);
    expect(digest(history, 'node id 7').lines).toEqual([acquired[0], acquired[4], acquired[5], acquired[6]]);
  });

  it('keeps writes that did not become a renewal', () => {
    const release = [
      line(9, 'task 3.1', '#5 replace 2.json'),
      line(9.1, 'store', '2.json is now free, version 4'),
      line(9.2, 'task 3.1', 'released'),
    ];
    expect(digest([...acquired, ...renewed, ...release], 'node id 7').lines.slice(-3)).toEqual(release);
    const lost = [
      line(9, 'task 3.1', '#5 replace 2.json'),
      line(9.5, 'task 3.1', 'lease of node id 2 (version 4) is lost: …'),
    ];
    expect(digest([...acquired, ...lost], 'node id 7').lines.slice(-2)).toEqual(lost);
  });

  it('keeps what happens to machines, and the violation', () => {
    const history = [
      line(4, '', '3 crash of 3 for 1 ms'),
      line(4, 'task 3.1', 'is killed'),
      line(5, 'VIOLATION', 'objects: …'),
    ];
    expect(digest(history, 'objects')).toEqual({ lines: history, left: 0 });
  });
});
