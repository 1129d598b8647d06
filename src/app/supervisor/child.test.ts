import { closeSync, fstatSync, openSync } from 'node:fs';
import { expect, it } from 'vitest';
import { closeInherited } from './child.js';

it('closes no file whose number belongs to another one by now, or to none', () => {
  const own = openSync('/dev/null', 'r');
  const gone = openSync('/dev/null', 'r');
  closeSync(gone);
  closeInherited([own, gone]);
  expect(fstatSync(own).isCharacterDevice()).toBe(true);
  closeSync(own);
});
