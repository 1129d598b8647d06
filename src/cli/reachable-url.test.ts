import { expect, it } from 'vitest';
import { reachableUrl } from './reachable-url.js';

it.each([
  ['0.0.0.0', 'http://127.0.0.1:7070'],
  ['::', 'http://[::1]:7070'],
  ['127.0.0.1', 'http://127.0.0.1:7070'],
  ['10.0.0.7', 'http://10.0.0.7:7070'],
  ['fd00::7', 'http://[fd00::7]:7070'],
  ['constructor', 'http://constructor:7070'],
])('a server that listens at %s is reached from the same host by %s', (host, url) => {
  expect(reachableUrl({ host, port: 7070 })).toBe(url);
});
