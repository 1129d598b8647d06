import { expect, it } from 'vitest';
import { removeEntry, writeEntry } from './edit.js';
import type { SharedData } from './shared-data.js';

/** Nothing of it is asked for what is wrong from the beginning. */
const shared = {} as SharedData;

it.each([
  ['null', null],
  ['nothing', undefined],
  ['a text', 'a'],
  ['a number for its text', { value: 7 }],
  ['of more levels than JSON can be made of', JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))],
])('an entry that is %s is refused by its name, and not by the failure to read it', async (_what, entry) => {
  const removal = { name: 'weights', scope: '', entry: entry as never };
  await expect(removeEntry(shared, removal, {})).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    setting: 'entry',
  });
});

it.each([undefined, 'Map', 'array'])(
  'an entry of the kind %s is refused, and not added to a set',
  async (kind) => {
    const shared = { set: async () => ({ lifespan: 'persistent', add: async () => undefined }) };
    const edit = { name: 'weights', scope: '', kind: kind as never, value: { type: 'String', value: 'a' } };
    await expect(writeEntry(shared as unknown as SharedData, edit, {})).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      setting: 'kind',
    });
  },
);
