import { h } from 'preact';
import type { ServiceEntry } from '../../../node/wire/entries-wire.js';
import { EntriesModel } from '../model/entries-model.js';
import { counted } from '../model/format.js';
import { question } from '../page/dialogs.js';
import { drawFoldersPage, type Folder, foldersFrame, payload, type Row, rowButton } from '../page/folders.js';
import { bad, mark, note } from '../page/ui.js';
import { browserClock } from '../page-clock.js';
import {
  addressText,
  changeText,
  countText,
  leaseText,
  type SeenService,
  servicesIn,
  sessionText,
  stateOf,
} from './services-model.js';

/** With more instances than this altogether the services are closed at first. */
const MAX_OPEN = 100;
const COLUMNS = ['Instance', 'Address', 'Lease', 'Payload', 'Actions'];
const MARKS = {
  enabled: 'held',
  disabled: 'free',
  'out of service': 'overdue',
  'of a Dubbo interface': 'free',
  damaged: 'damaged',
} as const;
const API = 'api/services';
const WARNING =
  'Its clients do not find it any more. A live task of nodelease registers it again at once; another program may do so only in its next session.';

// The page of services: draws what the stream brings, and asks for changes.

const model = new EntriesModel<ServiceEntry>(browserClock, changeText);
const frame = foldersFrame({
  stream: API,
  what: 'the services',
  model,
  draw,
});
/** Undefined until all services have been read once: how many there are decides what is open at first. */
let folders: readonly Folder[] | undefined;
let notice = '';

function draw() {
  const { about, store, entries } = model;
  for (const text of model.takeSpoken()) frame.announcer.say(text);
  if ((folders || store.isWhole) && model.takeChange()) {
    const services = servicesIn(entries);
    const isOpenAtFirst = entries.size - services.length <= MAX_OPEN;
    folders = services.map((service) => folderOf(service, isOpenAtFirst));
  }
  const access = about?.writes ? 'Changes need the token' : 'Read-only: started without --allow-writes';
  drawFoldersPage({
    frame,
    heading: 'Services',
    settings: settingsText(),
    tools: h('p', { class: 'quiet', id: 'access' }, about && access),
    placeholder: 'orders, disabled, …',
    notice,
    folders,
    none: folders ? `There are no services below ${about?.path}.` : 'Connecting …',
  });
}

function settingsText() {
  const { about, entries, store } = model;
  const services = folders?.length;
  const where = `${about?.zookeeper} ${about?.path}`;
  if (services === undefined) return about ? `${where} · reading …` : '';
  const more = store.isPartial ? ' There are more: only 10,000 are followed.' : '';
  return `${where} · ${counted(services, 'service')}, ${counted(entries.size - services, 'instance')}${more}`;
}

function folderOf({ service: { service, problem }, instances }: SeenService, isOpenAtFirst: boolean): Folder {
  return {
    key: service,
    title: service,
    problem,
    count: countText([...instances.values()]),
    columns: COLUMNS,
    rows: [...instances].map(([path, entry]) => rowOf(entry, path)),
    isOpenAtFirst,
  };
}

function rowOf(entry: ServiceEntry, path: string): Row {
  const { service, id, instance, text, problem } = entry;
  const state = stateOf(entry);
  const address = addressText(entry);
  const type = instance ? ` ${instance.serviceType}, ${sessionText(entry)}` : '';
  const changed = entry.changedAt && ` changed ${entry.changedAt.slice(0, -5)}Z`;
  const lease = leaseText(entry);
  const toggle = instance?.state === 'disabled' ? 'Enable' : 'Disable';
  const url = `${API}/${encodeURIComponent(service)}/${encodeURIComponent(id ?? '')}`;
  const body = JSON.stringify(toggle === 'Enable');
  const remove = async () => {
    const answer = await question(`Remove ${service} ${id}?`, WARNING, 'Remove');
    if (answer !== undefined) await change(url, { method: 'DELETE' });
  };
  const tool = (act: string, run: () => void) => rowButton(act, `${service} ${id}`, path, run);
  return {
    path,
    state,
    text: [id, state, address, type, lease, problem, instance?.dubbo, text].join('\n'),
    source: entry,
    cells: () => [
      [mark(MARKS[state]), ' ', h('b', null, id), note(` ${state}`)],
      [address, type && note(type), changed && note(changed)],
      lease,
      [problem !== null && bad(`It ${problem} `), text !== null && payload(path, text, instance?.dubbo)],
      model.about?.writes && [
        instance?.dubbo
          ? note('Dubbo cannot disable it')
          : instance && tool(toggle, () => change(`${url}/enabled`, { method: 'PUT', body })),
        ' ',
        tool('Remove', remove),
      ],
    ],
  };
}

async function change(url: string, request: RequestInit) {
  notice = await frame.change(url, request);
}

document.title = 'services · nodelease';
if (location.pathname.endsWith('/services')) frame.links([['./', 'Node ids']]);
frame.start();
