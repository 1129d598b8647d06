import { h } from 'preact';
import type { LockReport } from '../../../node/wire/cluster-snapshot.js';
import type { ClusterModel } from '../model/cluster-model.js';
import { counted, shortName } from '../model/format.js';
import { timeText } from '../model/timeline.js';
import { bad, mark, memo, note, panel } from '../page/ui.js';

/** The locks of the store; nothing without one. */
export function locksPanel({ hello }: ClusterModel) {
  const locks = hello?.locks;
  if (!locks?.length) return null;
  const content = () => h('ul', { class: 'entries' }, locks.map(lockItem));
  return memo(() => panel('locks', 'Locks', note(counted(locks.length, 'lock')), content()), [locks]);
}

function lockItem({ name, state, holder, token, since, until, problem }: LockReport) {
  const times = `since ${timeText(since ?? 0)}, until ${timeText(until ?? 0).slice(11)}`;
  const [kind, text] = holder
    ? [state, `${state} by ${shortName(holder)}, token ${token}, ${times} `]
    : ['free', problem ? '' : `free, last token ${token}`];
  const about = h('span', null, text, problem && bad(problem));
  return h('li', null, mark(problem ? 'damaged' : kind), h('b', null, name), about);
}
